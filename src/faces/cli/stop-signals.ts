export interface StopHandlers {
  /** The first Ctrl-C. */
  cancel(): void;
  /** The second one. */
  kill(): void;
  /** SIGTERM or SIGHUP: come to an end in good order. */
  terminate(): void;
}

/** Listens to the signals that ask this process to stop. The function returned gives them back. */
export function onStopSignals(handlers: StopHandlers): () => void {
  let interrupts = 0;
  let terminating = false;
  const onInterrupt = () => {
    interrupts += 1;
    if (interrupts === 1) handlers.cancel();
    else handlers.kill();
  };
  const onTerminate = () => {
    if (!terminating) handlers.terminate();
    terminating = true;
  };
  process.on('SIGINT', onInterrupt);
  process.on('SIGTERM', onTerminate);
  process.on('SIGHUP', onTerminate);
  return () => {
    process.off('SIGINT', onInterrupt);
    process.off('SIGTERM', onTerminate);
    process.off('SIGHUP', onTerminate);
  };
}
