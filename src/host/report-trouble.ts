import type { ThroughlineError } from '../core/errors.ts';
import { reportBug } from './report-bug.ts';

/** Says on stderr that what was accepted waits for the storage. */
export function reportTrouble({ message, hint }: ThroughlineError): void {
  process.stderr.write(`throughline: what is being done waits. ${message}${hint === undefined ? '' : ` ${hint}`}\n`);
}

/** At once, and while the same goes on only every now and then. That it cannot be told must not stop what waits. */
export function seldom(tell: (error: ThroughlineError) => void, everyMs = 30_000): (error: ThroughlineError) => void {
  const told = new Map<string, number>();
  return (error) => {
    const now = performance.now();
    if (now - (told.get(error.code) ?? Number.NEGATIVE_INFINITY) < everyMs) return;
    told.set(error.code, now);
    try {
      tell(error);
    } catch (fault) {
      reportBug(fault, 'telling that the storage takes nothing');
    }
  };
}
