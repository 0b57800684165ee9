import type { Reason } from '../core/health.ts';

/** Where the parts of a process report what does not work. Never throws. Reporting the same again has no effect. */
export interface Health {
  /** `part`: who reports, and about what; each has one reason at a time. Null: it works again. */
  report(part: string, reason: Reason | null): void;
  /** The current reasons, oldest first. */
  reasons(): readonly Reason[];
}
