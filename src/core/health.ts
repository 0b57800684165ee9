import type { Failure } from './errors.ts';

/** Why a process cannot do all of its work. It names no conversation, because operators of the server see it. */
export interface Reason extends Failure {
  readonly hint: string;
  /** True: it accepts nothing new, and requests should go to another process. False: the rest works. */
  readonly unready: boolean;
}

/** `degraded`: something does not work, the rest does. `unready`: it accepts nothing new. `stopping`: it shuts down. */
export const HEALTH_STATES = ['ok', 'degraded', 'unready', 'stopping'] as const;
export type HealthState = (typeof HEALTH_STATES)[number];

/** `live` is always true: the answer itself shows that the process is alive. */
export interface HealthReport {
  readonly status: HealthState;
  readonly live: true;
  readonly ready: boolean;
  readonly reasons: readonly Failure[];
}

/** `stopping`: why it stops; null: it does not. */
export function healthReport(given: readonly Reason[], stopping: Failure | null): HealthReport {
  const unready = given.some((reason) => reason.unready);
  const working = given.length === 0 ? 'ok' : 'degraded';
  const status = stopping !== null ? 'stopping' : unready ? 'unready' : working;
  const reasons = given.map(({ unready: _, ...failure }) => failure);
  return {
    status,
    live: true,
    ready: stopping === null && !unready,
    reasons: stopping === null ? reasons : [stopping, ...reasons],
  };
}
