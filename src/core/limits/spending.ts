import type { Failure } from '../errors.ts';
import type { Usage } from '../turn/usage.ts';
import { type Budget, isUnpriced, NO_BUDGET, tokensOf, usd } from './budget.ts';

/* How much may be spent on a day (UTC), by a conversation and by an owner. A task has its own budget besides. */

/** What was spent on a day. */
export interface DaySpending {
  readonly costMicros: number;
  /** All kinds together. */
  readonly tokens: number;
  /** Agents that completed turns and reported no cost. A turn whose cost is only unknown, because it was cut off, does not count. */
  readonly unpricedAgents: readonly string[];
}

export const NO_SPENDING: DaySpending = { costMicros: 0, tokens: 0, unpricedAgents: [] };

/** `usage`: of one turn of the agent, or of all its turns together. */
export function addSpending(before: DaySpending, agent: string, usage: Usage): DaySpending {
  const { unpricedAgents } = before;
  const isNew = isUnpriced(usage) && !unpricedAgents.includes(agent);
  return {
    costMicros: before.costMicros + usage.costMicros,
    tokens: before.tokens + tokensOf(usage),
    unpricedAgents: isNew ? [...unpricedAgents, agent] : unpricedAgents,
  };
}

/** How much may be spent on a day in a conversation, and by its owner. */
export interface PerDay {
  readonly conversation: Budget;
  readonly owner: Budget;
}

export interface Spending {
  readonly conversation: DaySpending;
  readonly owner: DaySpending;
}

export interface SpendingSettings {
  /** In one conversation. */
  readonly conversationPerDay: Budget;
  /** In all conversations of an owner together. */
  readonly ownerPerDay: Budget;
  /** Owners with another limit. */
  readonly owners: ReadonlyMap<string, Budget>;
}

export function perDayBy({ conversationPerDay, ownerPerDay, owners }: SpendingSettings, owner: string): PerDay {
  return { conversation: conversationPerDay, owner: owners.get(owner) ?? ownerPerDay };
}

/** With the conversation's own limit. Null: nothing is limited, so spending need not be read. */
export function effectivePerDay({ conversation, owner }: PerDay, own: Budget | null): PerDay | null {
  const limits = { conversation: lower(conversation, own ?? NO_BUDGET), owner };
  return isSet(limits.conversation) || isSet(limits.owner) ? limits : null;
}

/** Those that are set, with what was spent of them. */
export function dayLimits({ conversation, owner }: PerDay, spent: Spending): DayLimit[] {
  const limits: DayLimit[] = [
    { whose: 'conversation', limit: conversation, spent: spent.conversation },
    { whose: 'owner', limit: owner, spent: spent.owner },
  ];
  return limits.filter(({ limit }) => isSet(limit));
}

function isSet({ costMicros, tokens }: Budget): boolean {
  return costMicros !== null || tokens !== null;
}

/** One limit, whose it is, and what was spent of it. */
export interface DayLimit {
  readonly whose: 'conversation' | 'owner';
  readonly limit: Budget;
  readonly spent: DaySpending;
}

/** The lower of two limits, for each unit. */
export function lower(a: Budget, b: Budget): Budget {
  const least = (x: number | null, y: number | null) => (x === null ? y : y === null ? x : Math.min(x, y));
  return { costMicros: least(a.costMicros, b.costMicros), tokens: least(a.tokens, b.tokens) };
}

/** What the next turn may spend, within all limits. */
export function leftOf(limits: readonly DayLimit[]): Budget {
  return limits.reduce<Budget>((left, { limit, spent }) => {
    const { costMicros, tokens } = limit;
    return lower(left, {
      costMicros: costMicros === null ? null : costMicros - spent.costMicros,
      tokens: tokens === null ? null : tokens - spent.tokens,
    });
  }, NO_BUDGET);
}

/** Before a turn of this agent. Null: every limit allows it. */
export function judgeSpending(limits: readonly DayLimit[], agent: string, now: number): Failure | null {
  for (const one of limits) {
    const { limit, spent } = one;
    if (limit.tokens !== null && spent.tokens >= limit.tokens) {
      return reached(one, `${spent.tokens} of ${limit.tokens} tokens`, now);
    }
    if (limit.costMicros === null) continue;
    if (spent.costMicros >= limit.costMicros) {
      return reached(one, `${usd(spent.costMicros)} of ${usd(limit.costMicros)}`, now);
    }
    if (spent.unpricedAgents.includes(agent)) return unpriced(one, agent);
  }
  return null;
}

/** In the middle of a turn, which spends more than was left. */
export function overspent(limits: readonly DayLimit[], now: number): Failure {
  const names = limits.map(({ whose }) => SETTING[whose]).join(' or ');
  return {
    code: 'over_budget',
    message: 'The turn was ended in the middle: a limit of spending per day is reached.',
    hint: `What it did is kept. ${nextDay(now)} To spend more, raise ${names}.`,
  };
}

const SETTING = {
  conversation:
    'limits.conversationPerDay of the settings (or the own limit of the conversation: limitPerDay, --limit-per-day)',
  owner: 'limits.ownerPerDay of the settings',
};

function reached({ whose }: DayLimit, spent: string, now: number): Failure {
  return {
    code: 'over_budget',
    message: `The limit of this ${whose} for today (UTC) is reached: ${spent} spent.`,
    hint: `Nothing was sent. ${nextDay(now)} To spend more, raise ${SETTING[whose]}.`,
  };
}

function unpriced({ whose, limit }: DayLimit, agent: string): Failure {
  return {
    code: 'over_budget',
    message: `The limit of this ${whose} is ${usd(limit.costMicros ?? 0)} per day, but the agent "${agent}" reports no cost.`,
    hint: `Nothing was sent. Name an agent that reports its cost, or set ${SETTING[whose]} in tokens.`,
  };
}

const DAY_MS = 86_400_000;

function nextDay(now: number): string {
  const minutes = Math.ceil((DAY_MS - (now % DAY_MS)) / 60_000);
  const time = minutes < 120 ? `${minutes} minutes` : `${Math.round(minutes / 60)} hours`;
  return `A new day begins at 00:00 UTC, in ${time}.`;
}
