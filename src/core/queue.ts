import { ThroughlineError } from './errors.ts';
import { checkText, shown } from './input/arguments.ts';
import { type Prompt, parsePrompt } from './turn/content.ts';
import type { TurnState } from './turn/turn.ts';

/*
 * The queue of a conversation is its turns that were accepted and not begun, by number. A number is never given anew, so a turn that
 * is edited, or that must run after one with a higher number, is ended as cancelled, and another one takes its place.
 */

/** What becomes of a queued turn. With neither, it stays as it is, in the place that it has in the list. */
export interface QueueChange {
  readonly turn: string;
  /** Its new prompt. */
  readonly prompt?: Prompt;
  readonly drop?: boolean;
}

/** How long a list may be: it is carried out in one transaction, and everybody else waits meanwhile. */
export const MOST_QUEUED = 200;

/** Checks what a caller gives as the list of all queued turns. Throws `invalid`. */
export function parseQueueChanges(value: unknown): QueueChange[] {
  if (!Array.isArray(value)) {
    throw new ThroughlineError('invalid', `The queue must be a list of { turn, prompt?, drop? }, not ${shown(value)}.`);
  }
  if (value.length > MOST_QUEUED) {
    throw new ThroughlineError(
      'invalid',
      `At most ${MOST_QUEUED} queued turns can be changed at once, not ${value.length}.`,
      {
        hint: 'Cancel turns one by one until there are fewer.',
      },
    );
  }
  const changes = value.map(parseQueueChange);
  const twice = changes.find(({ turn }, index) => changes.findIndex((one) => one.turn === turn) < index);
  if (twice !== undefined) throw new ThroughlineError('invalid', `The turn "${twice.turn}" is in the list twice.`);
  return changes;
}

const FIELDS = ['turn', 'prompt', 'drop'];

function parseQueueChange(value: unknown): QueueChange {
  const fields: Record<string, unknown> = typeof value === 'object' && value !== null ? { ...value } : {};
  const unknown = Object.keys(fields).find((name) => !FIELDS.includes(name));
  if (unknown !== undefined) {
    throw new ThroughlineError('invalid', `A turn of the queue has no field "${unknown}".`, {
      hint: `Known fields: ${FIELDS.join(', ')}.`,
    });
  }
  const { prompt, drop = false } = fields;
  const turn = checkText(fields.turn, 'turn id');
  if (typeof drop !== 'boolean') throw new ThroughlineError('invalid', `"drop" must be true or false.`);
  if (drop && prompt !== undefined) {
    throw new ThroughlineError('invalid', 'A turn of the queue is either dropped or gets a new prompt, not both.');
  }
  return { turn, ...(prompt !== undefined && { prompt: parsePrompt(prompt) }), ...(drop && { drop }) };
}

export interface QueuePlan<T> {
  /** They stay as they are. All others come after them. */
  readonly keep: readonly T[];
  /** In the wanted order. */
  readonly replace: readonly T[];
  readonly drop: readonly T[];
}

/**
 * Replaces as few turns as possible. New turns get higher numbers, so what stays is a beginning of the wanted list: as far as numbers
 * rise and no prompt is new.
 */
export function planQueue<T extends QueueChange & { readonly n: number }>(wanted: readonly T[]): QueuePlan<T> {
  const stay = wanted.filter(({ drop }) => !drop);
  const first = stay.findIndex(({ n, prompt }, index) => prompt !== undefined || n < (stay[index - 1]?.n ?? 0));
  const kept = first === -1 ? stay.length : first;
  return { keep: stay.slice(0, kept), replace: stay.slice(kept), drop: wanted.filter(({ drop }) => drop) };
}

/** Turns that the caller took for queued, and are not; numbers of queued ones that he did not name. */
export interface QueueDifference {
  readonly gone: readonly { readonly n: number; readonly state: TurnState }[];
  readonly unnamed: readonly number[];
}

export function queueChanged({ gone, unnamed }: QueueDifference): ThroughlineError {
  const what = [
    ...gone.map(({ n, state }) => `turn ${n} is ${state}`),
    ...unnamed.map((n) => `turn ${n} is queued and not in the list`),
  ];
  const few = what.slice(0, 5).join(', ') + (what.length > 5 ? ` and ${what.length - 5} more` : '');
  return new ThroughlineError('conflict', `The queue is not as given: ${few}. Nothing was changed.`, {
    hint: 'Read the queue again, and name every turn of it.',
  });
}
