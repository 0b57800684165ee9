import { isObject } from '../content.ts';
import { asSentence, type Failure, ThroughlineError } from '../errors.ts';
import { shown } from '../shown.ts';
import type { TurnEnd } from '../turn.ts';
import type { Usage } from '../usage.ts';
import { type Budget, DECISION_CODES, DECISIONS, type Decision, type TaskState } from './task.ts';
import type { GateResult } from './task-gate.ts';

/** The state that a decision leaves a task in; null: it goes on running. */
export const STATE_AFTER: Record<Decision['decision'], TaskState | null> = {
  done: 'done',
  retry: null,
  ask: 'asking',
  'give-up': 'failed',
};

/** What a decision is made from. */
export interface Standing {
  readonly iteration: number;
  readonly maxIterations: number;
  readonly tries: number;
  readonly retryInterrupted: number;
  readonly budget: Budget;
  readonly spent: Usage;
  /** One of the turns since the last decision, of the agent or of the judge, has used tokens at no price that it told. */
  readonly unpriced: boolean;
}

/** Before a turn: null, it may begin. Nothing is begun that there is no budget for. */
export function decideBefore(standing: Standing): Decision | null {
  const { iteration, maxIterations } = standing;
  const unaffordable = decideBudget(standing);
  if (unaffordable !== null || iteration <= maxIterations) return unaffordable;
  return giveUp(
    'iterations_spent',
    `The gate has not passed in ${maxIterations} ${maxIterations === 1 ? 'turn' : 'turns'}.`,
  );
}

/** Before any turn, also of a judge: null, there is a budget for it. */
export function decideBudget(standing: Pick<Standing, 'budget' | 'spent' | 'unpriced'>): Decision | null {
  const { budget, spent, unpriced } = standing;
  const decision = budgetSpent(standing);
  if (decision !== null || budget.costMicros === null || !(unpriced || isUnpriced(spent))) return decision;
  return ask('cost_unknown', 'The budget is in USD, and the agent does not say what its turns cost. Set it in tokens.');
}

function budgetSpent({ budget, spent }: Pick<Standing, 'budget' | 'spent'>): Decision | null {
  const tokens = tokensOf(spent);
  if (budget.tokens !== null && tokens >= budget.tokens) {
    return giveUp('budget_spent', `The budget of ${budget.tokens} tokens is spent: ${tokens} were used.`);
  }
  if (budget.costMicros !== null && spent.costMicros >= budget.costMicros) {
    return giveUp(
      'budget_spent',
      `The budget of ${usd(budget.costMicros)} is spent: it came to ${usd(spent.costMicros)}.`,
    );
  }
  return null;
}

/** After a turn and, when it completed, its gate. */
export function decideAfter(
  standing: Standing,
  turn: { readonly outcome: TurnEnd; readonly failure: Failure | null },
  gate: GateResult | null,
): Decision {
  switch (turn.outcome) {
    case 'completed':
      return gate === null ? done('no_gate', 'The turn completed, and there is no gate.') : byGate(standing, gate);
    case 'interrupted':
      return byRule(standing, turn.failure);
    case 'cancelled':
      // It may have been for the budget that it was cancelled, by a runner that died before it could say so.
      return (
        budgetSpent(standing) ?? ask('turn_cancelled', 'Its turn was cancelled by somebody, and the task was not.')
      );
    case 'failed':
      return ask('turn_failed', `Its turn failed: ${asSentence(turn.failure?.message ?? 'nobody knows why')}`);
  }
}

function byGate(standing: Standing, gate: GateResult): Decision {
  switch (gate.verdict) {
    case 'pass':
      return done('gate_passed', `The gate passed: ${asSentence(gate.summary)}`);
    case 'ask':
      return ask('gate_asks', asSentence(gate.summary));
    case 'broken':
      return ask('gate_broken', `The gate itself does not work: ${asSentence(gate.summary)}`);
    case 'fail':
      return (
        decideBefore({ ...standing, iteration: standing.iteration + 1 }) ?? {
          decision: 'retry',
          code: 'gate_failed',
          reason: `The gate failed: ${asSentence(gate.summary)}`,
        }
      );
  }
}

/** Nobody knows what an interrupted turn has done: only the task's own rule says that it may be tried again. */
function byRule(standing: Standing, failure: Failure | null): Decision {
  const why = asSentence(failure?.message ?? 'a process ended');
  const { tries, retryInterrupted } = standing;
  if (tries >= retryInterrupted) {
    const again = retryInterrupted === 0 ? '' : ` It was tried again ${times(tries)} already.`;
    return ask('turn_interrupted', `Its turn was interrupted: ${why}${again}`);
  }
  return (
    decideBefore(standing) ?? {
      decision: 'retry',
      code: 'turn_interrupted',
      reason: `Its turn was interrupted: ${why} It may be tried again ${times(retryInterrupted - tries)}.`,
    }
  );
}

/** It has used tokens, and does not say what they cost. */
export function isUnpriced(usage: Usage): boolean {
  return usage.costMicros === 0 && tokensOf(usage) > 0;
}

export function tokensOf({ inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens }: Usage): number {
  return inputTokens + outputTokens + cacheReadTokens + cacheWriteTokens;
}

/** What is stored is one of the known values with a reason, or nothing is. Throws `invalid`. */
export function checkDecision(input: unknown): Decision {
  const { decision, code, reason } = isObject(input) ? (input as Partial<Decision>) : {};
  const known = DECISIONS.some((one) => one === decision) && DECISION_CODES.some((one) => one === code);
  if (known && typeof reason === 'string' && reason.trim() !== '') return input as Decision;
  throw new ThroughlineError('invalid', `${shown(input)} is no decision.`, {
    hint: `It is one of ${DECISIONS.join(', ')}, with a code and a reason.`,
  });
}

const done = (code: Decision['code'], reason: string): Decision => ({ decision: 'done', code, reason });
const ask = (code: Decision['code'], reason: string): Decision => ({ decision: 'ask', code, reason });
export const giveUp = (code: Decision['code'], reason: string): Decision => ({ decision: 'give-up', code, reason });
const usd = (micros: number) => `${(micros / 1_000_000).toFixed(4).replace(/0{1,2}$/, '')} USD`;
const times = (n: number) => (n === 1 ? 'once' : `${n} times`);
