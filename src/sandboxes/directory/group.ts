/** Signals a whole process group. One that is gone, or not ours, is left alone. */
export function signalGroup(leader: number, signal: 'SIGTERM' | 'SIGKILL'): void {
  try {
    process.kill(-leader, signal);
  } catch {
    // ESRCH: nobody is left in it. EPERM: it is not ours.
  }
}

/** Running groups, each with a way to end what it started outside of its group. */
const running = new Map<number, () => void>();

/**
 * Ends the group when our own process exits, so that nothing works on unwatched. When we are killed by SIGKILL this cannot
 * run; then the program sees its input end. Returns a function that takes it back.
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
