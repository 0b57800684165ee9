import { ThroughlineError } from './errors.ts';
import { checkBoolean, checkOptions, checkText, shown } from './input/arguments.ts';
import { type Prompt, parsePrompt } from './turn/content.ts';
import type { TurnState } from './turn/turn.ts';

/*
 * The queue of a conversation is its turns that were accepted and have not begun, by number. Numbers are never reused. So a turn that is
 * edited, or that must run after one with a higher number, ends as cancelled, and a new one takes its place.
 */

/** What to do with a queued turn. With neither `prompt` nor `drop`, only its place in the list counts. */
export interface QueueChange {
  readonly turn: string;
  /** Its new prompt. */
  readonly prompt?: Prompt;
  readonly drop?: boolean;
}

/** The longest list. It is applied in one transaction, and all other writers wait for that. */
export const MOST_QUEUED = 200;

/** Checks what a caller gives as the list of all queued turns. Throws `invalid`. */
export function parseQueueChanges(value: unknown): QueueChange[] {
  if (!Array.isArray(value)) {
    throw new ThroughlineError('invalid', `The queue must be a list of { turn, prompt?, drop? }, not ${shown(value)}.`);
  }
  if (value.length > MOST_QUEUED) {
    const message = `At most ${MOST_QUEUED} queued turns can be changed at once, not ${value.length}.`;
    throw new ThroughlineError('invalid', message, { hint: 'Cancel turns one by one until there are fewer.' });
  }
  const changes = value.map(parseQueueChange);
  const twice = changes.find(({ turn }, index) => changes.findIndex((one) => one.turn === turn) < index);
  if (twice !== undefined) throw new ThroughlineError('invalid', `The turn "${twice.turn}" is in the list twice.`);
  return changes;
}

function parseQueueChange(value: { turn?: unknown; prompt?: unknown; drop?: unknown }): QueueChange {
  checkOptions(value, { turn: true, prompt: true, drop: true }, 'A turn of the queue');
  const { prompt, drop = false } = value;
  const turn = checkText(value.turn, 'turn id');
  checkBoolean(drop, '"drop"');
  if (drop && prompt !== undefined) {
    throw new ThroughlineError('invalid', 'A turn of the queue is either dropped or gets a new prompt, not both.');
  }
  return { turn, ...(prompt !== undefined && { prompt: parsePrompt(prompt) }), ...(drop && { drop }) };
}

export interface QueuePlan<T> {
  /** Unchanged. All others come after them. */
  readonly keep: readonly T[];
  /** In the wanted order. */
  readonly replace: readonly T[];
  readonly drop: readonly T[];
}

/**
 * Replaces as few turns as possible. New turns get higher numbers, so only the beginning of the wanted list can stay: up to the first
 * lower number or new prompt.
 */
export function planQueue<T extends QueueChange & { readonly n: number }>(wanted: readonly T[]): QueuePlan<T> {
  const stay = wanted.filter(({ drop }) => !drop);
  const first = stay.findIndex(({ n, prompt }, index) => prompt !== undefined || n < (stay[index - 1]?.n ?? 0));
  const kept = first === -1 ? stay.length : first;
  return { keep: stay.slice(0, kept), replace: stay.slice(kept), drop: wanted.filter(({ drop }) => drop) };
}

/** How the queue differs from the list of the caller. */
export interface QueueDifference {
  /** Turns of the list that are not queued. */
  readonly gone: readonly { readonly n: number; readonly state: TurnState }[];
  /** The numbers of queued turns that are not in the list. */
  readonly unnamed: readonly number[];
}

export function queueChanged({ gone, unnamed }: QueueDifference): ThroughlineError {
  const what = [
    ...gone.map(({ n, state }) => `turn ${n} is ${state}`),
    ...unnamed.map((n) => `turn ${n} is queued and not in the list`),
  ];
  const few = what.slice(0, 5).join(', ') + (what.length > 5 ? ` and ${what.length - 5} more` : '');
  return new ThroughlineError('conflict', `The queue differs from the list: ${few}. Nothing was changed.`, {
    hint: 'Read the queue again, and list every turn of it.',
  });
}
