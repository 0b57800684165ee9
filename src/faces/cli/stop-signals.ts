import { EXIT } from './exit-codes.ts';
import type { Output } from './output.ts';

export interface StopHandlers {
  /** The first Ctrl-C. */
  cancel(): void;
  /** The second one. */
  kill(): void;
  /** SIGTERM or SIGHUP: come to an end in good order. */
  terminate(): void;
}

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
let letGo: (() => void) | null = null;

/**
 * From now on a signal is kept for whoever listens next: while something is accepted there is nothing yet that it could stop, and
 * without a listener it would end this process and leave behind what has just been accepted. A second one ends it all the same.
 */
export function holdStopSignals(output: Pick<Output, 'note'>): void {
  const held: NodeJS.Signals[] = [];
  const hold = (signal: NodeJS.Signals) => {
    if (held.push(signal) > 1) process.exit(EXIT.cancelled);
    output.note('Stops as soon as it is known whether this was accepted; once more leaves at once.');
  };
  for (const signal of SIGNALS) process.on(signal, hold);
  letGo = () => {
    for (const signal of SIGNALS) process.off(signal, hold);
    for (const signal of held) process.emit(signal, signal);
  };
}

/** Listens to the signals that ask this process to stop, and gets those that were held. The function returned gives them back. */
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
  // Whoever calls this is not ready before it has returned.
  if (letGo !== null) queueMicrotask(letGo);
  letGo = null;
  return () => {
    process.off('SIGINT', onInterrupt);
    process.off('SIGTERM', onTerminate);
    process.off('SIGHUP', onTerminate);
  };
}
