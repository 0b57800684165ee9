import { asSentence, type Failure, ThroughlineError } from '../errors.ts';
import { shown } from '../input/arguments.ts';
import { type Budget, isUnpriced, tokensOf, usd } from '../limits/budget.ts';
import { isObject } from '../turn/content.ts';
import { type Denial, NOBODY_THERE } from '../turn/permission.ts';
import type { TurnEnd } from '../turn/turn.ts';
import type { Usage } from '../turn/usage.ts';
import { DECISION_CODES, DECISIONS, type Decision, type TaskState } from './task.ts';
import type { GateResult } from './task-gate.ts';

/** The state of the task after a decision; null: it keeps running. */
export const STATE_AFTER: Record<Decision['decision'], TaskState | null> = {
  done: 'done',
  retry: null,
  ask: 'asking',
  'give-up': 'failed',
};

/** The facts that a decision is made from. */
export interface Standing {
  readonly iteration: number;
  readonly maxIterations: number;
  readonly tries: number;
  readonly retryInterrupted: number;
  readonly budget: Budget;
  readonly spent: Usage;
  /** The agent, or the judge, whose turn since the last decision completed without a reported cost; null: there is none. */
  readonly unpriced: string | null;
}

/** Before a turn. Null: it may start. */
export function decideBefore(standing: Standing): Decision | null {
  const { iteration, maxIterations } = standing;
  const unaffordable = decideBudget(standing);
  if (unaffordable !== null || iteration <= maxIterations) return unaffordable;
  return giveUp(
    'iterations_spent',
    `The gate has not passed in ${maxIterations} ${maxIterations === 1 ? 'turn' : 'turns'}.`,
  );
}

/** Before any turn, also of a judge. Null: there is budget for it. */
export function decideBudget(standing: Pick<Standing, 'budget' | 'spent' | 'unpriced'>): Decision | null {
  const { budget, spent, unpriced } = standing;
  const decision = budgetSpent(standing);
  if (decision !== null || budget.costMicros === null || (unpriced === null && !isUnpriced(spent))) return decision;
  const agent = unpriced === null ? 'its agent' : `the agent "${unpriced}"`;
  return ask('cost_unknown', `The budget is in USD, and ${agent} reports no cost. Set the budget in tokens.`);
}

function budgetSpent({ budget, spent }: Pick<Standing, 'budget' | 'spent'>): Decision | null {
  const tokens = tokensOf(spent);
  if (budget.tokens !== null && tokens >= budget.tokens) {
    return giveUp('budget_spent', `The budget of ${budget.tokens} tokens is spent: ${tokens} were used.`);
  }
  if (budget.costMicros !== null && spent.costMicros >= budget.costMicros) {
    return giveUp(
      'budget_spent',
      `The budget of ${usd(budget.costMicros)} is spent: ${usd(spent.costMicros)} were used.`,
    );
  }
  return null;
}

/** After a turn and, when it completed, its gate. */
export function decideAfter(standing: Standing, turn: EndedTurn, gate: GateResult | null): Decision {
  switch (turn.outcome) {
    case 'completed':
      return gate === null
        ? done('no_gate', `The turn completed, and there is no gate.${denials(turn, ' ')}`)
        : byGate(standing, gate, turn);
    case 'interrupted':
      return afterInterruption(standing, turn.failure);
    case 'cancelled':
      // A runner that died since may have cancelled it because of the budget.
      return budgetSpent(standing) ?? ask('turn_cancelled', 'Somebody cancelled its turn, but not the task.');
    case 'failed':
      // A retry has to let somebody answer, or it would fail again.
      return ask(
        turn.failure?.code === 'permission_denied' ? 'permission_denied' : 'turn_failed',
        `Its turn failed: ${reasonOf(turn.failure)}${denials(turn, ' ')}`,
      );
  }
}

/** The facts of a turn that a decision depends on. */
interface EndedTurn {
  readonly outcome: TurnEnd;
  readonly failure: Failure | null;
  /** Questions that were denied because nobody answered. */
  readonly denied: readonly Denial[];
  /** The setting that lets the agent act without asking; null: none is known. */
  readonly howToAllow: string | null;
}

function reasonOf(failure: Failure | null): string {
  if (failure === null) return 'no reason is known.';
  return [failure.message, failure.hint ?? '']
    .filter((text) => text !== '')
    .map(asSentence)
    .join(' ');
}

const MOST_TITLES = 3;

/** Empty: nothing was denied. */
function denials({ denied }: EndedTurn, before: string): string {
  if (denied.length === 0) return '';
  const titles = denied.slice(0, MOST_TITLES).map(({ title }) => `"${title}"`);
  const more = denied.length > MOST_TITLES ? ` and ${denied.length - MOST_TITLES} more` : '';
  return `${before}The agent asked for permission, and nobody answered: ${titles.join(', ')}${more}.`;
}

function byGate(standing: Standing, gate: GateResult, turn: EndedTurn): Decision {
  switch (gate.verdict) {
    case 'pass':
      return done('gate_passed', `The gate passed: ${asSentence(gate.summary)}`);
    case 'ask':
      return ask('gate_asks', asSentence(gate.summary));
    case 'broken':
      return ask('gate_broken', `The gate does not work: ${asSentence(gate.summary)}`);
    case 'fail':
      // The next turn would cost something and be denied again.
      if (turn.denied.length > 0) return ask('permission_denied', deniedBeforeGate(gate, turn));
      return (
        decideBefore({ ...standing, iteration: standing.iteration + 1 }) ?? {
          decision: 'retry',
          code: 'gate_failed',
          reason: `The gate failed: ${asSentence(gate.summary)}`,
        }
      );
  }
}

function deniedBeforeGate(gate: GateResult, turn: EndedTurn): string {
  const inTime = 'retry it and answer in time (the setting permissions.waitSeconds says how long a question waits)';
  const atOnce = turn.denied.some(({ reason }) => reason === NOBODY_THERE);
  const answer = atOnce ? 'retry it with "permissions": "ask" (--permissions ask), and answer' : inTime;
  const how = turn.howToAllow === null ? 'in its own settings' : `with ${turn.howToAllow} in its settings`;
  return [
    `The gate failed: ${asSentence(gate.summary)}`,
    denials(turn, ''),
    `Let the agent act without asking, ${how}, and retry the task; or ${answer}.`,
  ].join(' ');
}

/** What an interrupted turn did is unknown: it is retried only if the task allows it. */
function afterInterruption(standing: Standing, failure: Failure | null): Decision {
  const why = asSentence(failure?.message ?? 'a process ended');
  const { tries, retryInterrupted } = standing;
  if (tries >= retryInterrupted) {
    const again = retryInterrupted === 0 ? '' : ` It was already retried ${times(tries)}.`;
    return ask('turn_interrupted', `Its turn was interrupted: ${why}${again}`);
  }
  return (
    decideBefore(standing) ?? {
      decision: 'retry',
      code: 'turn_interrupted',
      reason: `Its turn was interrupted: ${why} It may be retried ${times(retryInterrupted - tries)}.`,
    }
  );
}

/** Throws `invalid` unless it is a known decision and code with a reason. */
export function checkDecision(input: unknown): Decision {
  const { decision, code, reason } = isObject(input) ? (input as Partial<Decision>) : {};
  const known = DECISIONS.some((one) => one === decision) && DECISION_CODES.some((one) => one === code);
  if (known && typeof reason === 'string' && reason.trim() !== '') return input as Decision;
  throw new ThroughlineError('invalid', `${shown(input)} is not a decision.`, {
    hint: `A decision is one of ${DECISIONS.join(', ')}, with a code and a reason.`,
  });
}

const done = (code: Decision['code'], reason: string): Decision => ({ decision: 'done', code, reason });
const ask = (code: Decision['code'], reason: string): Decision => ({ decision: 'ask', code, reason });
export const giveUp = (code: Decision['code'], reason: string): Decision => ({ decision: 'give-up', code, reason });
const times = (n: number) => (n === 1 ? 'once' : `${n} times`);
