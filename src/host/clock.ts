import type { Clock } from '../ports/clock.ts';

/**
 * The clock of this machine. `process.hrtime` is CLOCK_MONOTONIC on Linux and mach time on macOS: it counts from the boot, so two
 * processes of one boot can compare it. (`performance.now()` counts from the start of each process and cannot be used for a lease.)
 */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => Number(process.hrtime.bigint() / 1000n) / 1000,
};
