import { EXIT } from './exit-codes.ts';
import type { Output } from './output.ts';

interface StopHandlers {
  /** The first Ctrl-C. */
  cancel(): void;
  /** The second one. */
  kill(): void;
  /** SIGTERM or SIGHUP: end normally. */
  terminate(): void;
}

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
let releaseHeld: (() => void) | null = null;

/**
 * Keeps a signal for the next listener. While a turn is being accepted there is nothing to stop yet, and without a listener
 * the signal would end this process and leave the accepted turn behind. A second signal ends the process at once. Disposing
 * (`using`) stops holding, also when nothing was accepted and nobody listened.
 */
export function holdStopSignals(output: Pick<Output, 'note'>): Disposable {
  const held: NodeJS.Signals[] = [];
  const hold = (signal: NodeJS.Signals) => {
    if (held.push(signal) > 1) process.exit(EXIT.cancelled);
    output.note('Stopping as soon as we know whether this was accepted. Press Ctrl-C again to leave at once.');
  };
  for (const signal of SIGNALS) process.on(signal, hold);
  const stopHolding = () => {
    for (const signal of SIGNALS) process.off(signal, hold);
  };
  const release = () => {
    stopHolding();
    for (const signal of held) process.emit(signal, signal);
  };
  releaseHeld = release;
  return {
    [Symbol.dispose]() {
      stopHolding();
      if (releaseHeld === release) releaseHeld = null;
    },
  };
}

/** Listens to the signals that ask this process to stop, including held ones. Returns a function that stops listening. */
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
  // The caller is not ready before this function has returned.
  if (releaseHeld !== null) queueMicrotask(releaseHeld);
  releaseHeld = null;
  return () => {
    process.off('SIGINT', onInterrupt);
    process.off('SIGTERM', onTerminate);
    process.off('SIGHUP', onTerminate);
  };
}
