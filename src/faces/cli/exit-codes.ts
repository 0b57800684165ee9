import { constants } from 'node:os';
import type { ErrorCode, Failure } from '../../core/errors.ts';
import type { TurnEnd } from '../../core/turn/turn.ts';

/** Every other exit code is in the table, which does not compile while an error code is missing. */
export const DONE = 0;

export const EXIT: Record<ErrorCode, number> = {
  invalid: 2,
  refused: 2,
  too_large: 2,
  agent_unavailable: 3,
  signed_out: 3,
  not_found: 4,
  permission_denied: 5,
  restore_failed: 6,
  context_refuted: 6,
  interrupted: 7,
  cancelled: 130,
  conflict: 1,
  log_changed: 1,
  agent_failed: 1,
  agent_died: 1,
  too_many: 1,
  too_long: 1,
  session_locked: 1,
  timed_out: 1,
  stalled: 1,
  over_budget: 1,
  lease_lost: 1,
  storage_full: 1,
  storage_readonly: 1,
  storage_gone: 1,
  storage_lost: 1,
  storage_damaged: 1,
  storage_newer: 1,
  storage_busy: 1,
  closed: 1,
  unreachable: 1,
  internal: 1,
};

/**
 * Of "sandbox exec", whose other exit codes are those of the command: it was ended after ten minutes, and everything that the table above has
 * another code for. "timeout" and "docker run" use the same two.
 */
export const EXEC_EXIT = { timedOut: 124, ours: 125 };

/** As shells end for a command that was ended by a signal. */
export function exitOfSignal(signal: string): number {
  return 128 + (constants.signals[signal as NodeJS.Signals] ?? 0);
}

/** An interrupted turn is interrupted, whatever caused it; a failed turn has the exit code of its failure. */
export function exitOfTurn(outcome: TurnEnd, failure: Failure | null): number {
  if (outcome === 'completed') return DONE;
  if (outcome === 'interrupted' || outcome === 'cancelled') return EXIT[outcome];
  return EXIT[failure?.code ?? 'internal'];
}
