import { asSentence, type Failure } from '../../core/errors.ts';
import type { Proof, Receipt } from '../../core/receipt.ts';
import type { AgentOutcome } from '../../ports/agent.ts';
import type { AttemptResult } from './attempt.ts';
import type { TurnSignal } from './turn-signal.ts';

/** Why the turn has not completed, as people are told; null: it has. */
export function failureOfOutcome(outcome: AgentOutcome, signal: TurnSignal): Failure | null {
  if (outcome.kind === 'completed') return null;
  if (signal.reason === 'cancelled') return { code: 'cancelled', message: 'Cancelled.' };
  if (signal.reason === 'shutdown')
    return { code: 'interrupted', message: 'This program was ended in the middle of the turn.' };
  if (outcome.kind === 'failed') {
    const { code, message, hint } = outcome;
    return { code, message, ...(hint === undefined ? {} : { hint }) };
  }
  if (outcome.kind === 'cancelled') return { code: 'cancelled', message: 'The agent says that it was cancelled.' };
  return {
    code: 'agent_died',
    message: asSentence(outcome.message),
    hint: 'What it had done is kept. "throughline retry" asks again.',
  };
}

/** The prompt is no part of the session: it did not leave, or was not taken. */
export function isUntaken(outcome: AttemptResult['outcome']): boolean {
  return outcome.kind === 'failed' && outcome.unsent === true;
}

/**
 * How far it is shown, in the end, that the session had its context. That a prompt arrived proves nothing about a history that
 * was knowingly left out.
 */
export function worth({ rung, before }: Receipt, after: Proof | null): Proof {
  return rung === 'fresh' && after === 'proved' ? before : (after ?? before);
}
