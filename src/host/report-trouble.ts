import type { ThroughlineError } from '../core/errors.ts';

/** Says on stderr that what was accepted waits for the storage. */
export function reportTrouble({ message, hint }: ThroughlineError): void {
  process.stderr.write(`throughline: what is being done waits. ${message}${hint === undefined ? '' : ` ${hint}`}\n`);
}

/** At once, and while the same goes on only every now and then. */
export function seldom(tell: (error: ThroughlineError) => void, everyMs = 30_000): (error: ThroughlineError) => void {
  const told = new Map<string, number>();
  return (error) => {
    const now = performance.now();
    if (now - (told.get(error.code) ?? Number.NEGATIVE_INFINITY) < everyMs) return;
    told.set(error.code, now);
    tell(error);
  };
}
