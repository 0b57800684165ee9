import type { Clock } from '../ports/clock.ts';

/**
 * This machine's times. `process.hrtime` is CLOCK_MONOTONIC on Linux and mach time on macOS: it counts from the boot, not
 * from the start of a process, so two processes of one boot can compare it. (`performance.now()` counts from the start of
 * each process and cannot be used for a lease.)
 */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => Number(process.hrtime.bigint() / 1000n) / 1000,
};
