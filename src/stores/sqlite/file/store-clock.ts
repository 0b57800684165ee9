import type { Clock } from '../../../ports/clock.ts';
import type { Database } from './database.ts';

/*
 * The time that leases are measured in. Within a boot it runs as the machine's monotonic clock does, so that a wall clock that is set
 * expires nothing. Where it starts is taken from the wall clock, once for each boot, and stored: all processes of the boot use the same
 * value, and the times of two boots, or of two machines, can be compared as far as their wall clocks agreed then.
 */

/** A boot of a machine, and its clock. */
export interface BootClock {
  readonly boot: string;
  readonly clock: Clock;
}

/** How far the time of the store is ahead of the monotonic clock of a boot: the fact with this prefix and the boot. */
const CLOCK = 'clock:';
const AHEAD = "SELECT value FROM facts WHERE owner = '' AND name = ?";
const SET_AHEAD = "INSERT INTO facts (owner, name, value) VALUES ('', ?, ?)";

/**
 * A wall clock may be wrong when a machine has just started, by years. Then what waits must not wait for that time to come, and a lease
 * ends within the longest time that one may last.
 */
const LONGEST_LEASE_MS = 60_000;
const LIMITS = [
  'UPDATE leases SET ready_at = ?1 WHERE worker IS NULL AND ready_at > ?1',
  `UPDATE leases SET ready_at = ?1 + ${LONGEST_LEASE_MS} WHERE worker IS NOT NULL AND ready_at > ?1 + ${LONGEST_LEASE_MS}`,
  `UPDATE tasks SET lease_end = ?1 + ${LONGEST_LEASE_MS} WHERE state = 'running' AND lease_end > ?1 + ${LONGEST_LEASE_MS}`,
  `UPDATE sandboxes SET held_until = ?1 + ${LONGEST_LEASE_MS} WHERE held_until > ?1 + ${LONGEST_LEASE_MS}`,
  "UPDATE workers SET takes = json_set(takes, '$.at', ?1) WHERE takes ->> '$.at' > ?1",
];

/** Call it in a write transaction. The first process of a boot decides for all. */
export function adoptClock(db: Database, { boot, clock }: BootClock): void {
  const known = storedAhead(db, boot);
  db.ahead = known ?? aheadNow(clock);
  if (known !== null) return;
  db.run(SET_AHEAD, `${CLOCK}${boot}`, String(db.ahead));
  for (const sql of LIMITS) db.run(sql, clock.monotonic() + db.ahead);
}

/** For a database that can only be read. */
export function readClock(db: Database, { boot, clock }: BootClock): void {
  db.ahead = storedAhead(db, boot) ?? aheadNow(clock);
}

/** The clock of the store on this database: `monotonic` is the time that leases are measured in. */
export function storeClock(db: Database, clock: Clock): Clock {
  return { now: () => clock.now(), monotonic: () => clock.monotonic() + db.ahead };
}

function storedAhead(db: Database, boot: string): number | null {
  const stored = db.one<{ value: string }>(AHEAD, `${CLOCK}${boot}`);
  return stored === undefined ? null : Number(stored.value);
}

function aheadNow(clock: Clock): number {
  return clock.now() - clock.monotonic();
}
