/** Signals a whole process group. One that is gone, or not ours, is left alone. */
export function signalGroup(leader: number, signal: 'SIGTERM' | 'SIGKILL'): void {
  try {
    process.kill(-leader, signal);
  } catch {
    // ESRCH: nobody is left in it. EPERM: it is not ours.
  }
}

/** What runs, and how to end what it left outside of its group. */
const running = new Map<number, () => void>();

/**
 * Ends the group when our own process ends on its own terms, so that nothing works on without anybody watching. Against
 * SIGKILL of ourselves nothing helps here; there the program sees its input end. Returns the way to take it back.
 */
export function endWithUs(leader: number, endRest: () => void = () => {}): () => void {
  if (running.size === 0) process.once('exit', endAll);
  running.set(leader, endRest);
  return () => {
    running.delete(leader);
    if (running.size === 0) process.off('exit', endAll);
  };
}

function endAll(): void {
  for (const [leader, endRest] of running) {
    signalGroup(leader, 'SIGKILL');
    endRest();
  }
}
