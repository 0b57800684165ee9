import type { Reason } from '../core/health.ts';

/** Where the parts of a process say what does not work. Never throws; saying the same again costs nothing and is not told again. */
export interface Health {
  /** `part`: who says so, and about what; each has one reason at a time. Null takes it back: it works again. */
  report(part: string, reason: Reason | null): void;
  /** Those that hold now, oldest first. */
  reasons(): readonly Reason[];
}
