import { type ErrorCode, type Failure, ThroughlineError } from './errors.ts';
import { checkText, given, shown } from './input/arguments.ts';
import { isDay } from './input/usage-page.ts';
import type { Budget } from './limits/budget.ts';
import type { RestoreOverride } from './restore/restore-settings.ts';
import type { KeptChoices } from './turn/choices.ts';
import { hasEnded, type TurnEnd, type TurnState } from './turn/turn.ts';
import type { Usage } from './turn/usage.ts';

/** Where a title came from, in rising order: a higher source replaces a lower one, never the reverse. */
export const TITLE_SOURCES = ['none', 'prompt', 'agent', 'caller'] as const;
export type TitleSource = (typeof TITLE_SOURCES)[number];

/** Who runs the turns: our workers, or a program that drives its agent itself through the ConversationTracker. */
export type Driver = 'worker' | 'tracker';

/**
 * What a conversation is doing, or how its last turn ended:
 *
 *   asks         an agent waits for the answer to a question (a permission)
 *   running      a turn runs
 *   queued       turns wait, and none has begun; `stranded` and `delayed` say why, where there is a reason
 *   unrestored   no turn is open, and the turn that ended last failed because its context could not be restored
 *   failed       … failed for another reason
 *   interrupted  … was interrupted: by a limit, or because a process ended
 *   idle         … completed or was cancelled, or no turn has ended here
 */
export const CONVERSATION_STATES = [
  'asks',
  'running',
  'queued',
  'unrestored',
  'failed',
  'interrupted',
  'idle',
] as const;

/**
 * What a conversation is doing, or how its last turn ended.
 *
 * @example
 * const needsMe = await tl.conversations({ state: ['asks', 'unrestored', 'failed'] });
 */
export type ConversationState = (typeof CONVERSATION_STATES)[number];

/** What the state of a conversation depends on. */
export interface StateFacts {
  /** The state of its oldest open turn, the only one that can have begun; null: none is open. */
  readonly open: TurnState | null;
  /** The turn that ended last; null: none has ended here. Imported turns ended elsewhere and do not count. */
  readonly last: { readonly outcome: TurnEnd; readonly failure: Pick<Failure, 'code'> | null } | null;
}

export function conversationState({ open, last }: StateFacts): ConversationState {
  if (open !== null && !hasEnded(open)) return open === 'waiting' ? 'asks' : open;
  if (last === null) return 'idle';
  const { outcome, failure } = last;
  if (failure !== null && UNRESTORED.includes(failure.code)) return 'unrestored';
  return outcome === 'failed' || outcome === 'interrupted' ? outcome : 'idle';
}

/** The prompt was not sent because the context was missing, or the agent turned out to lack the context. */
const UNRESTORED: readonly ErrorCode[] = ['restore_failed', 'context_refuted'];

/**
 * Where a list shows a conversation. It changes nothing else.
 *
 * @example
 * await chat.arrange({ pinned: true });
 */
export interface Arrangement {
  /** Whether it stays at the top of its project. */
  readonly pinned?: boolean | undefined;
  /** Whether lists leave it out, until its next prompt. */
  readonly putAway?: boolean | undefined;
}

/** Throws `invalid`. */
export function checkArrangement({ pinned, putAway }: Arrangement): { pinned?: boolean; putAway?: boolean } {
  for (const [name, value] of Object.entries({ pinned, putAway })) {
    if (value !== undefined && typeof value !== 'boolean') {
      throw new ThroughlineError('invalid', `"${name}" must be true or false, not ${shown(value)}.`);
    }
  }
  if (pinned === undefined && putAway === undefined) {
    throw new ThroughlineError('invalid', 'Nothing to change: set "pinned" or "putAway".');
  }
  return given({ pinned, putAway });
}

/** Which conversations to list. All given conditions must hold. */
export interface ConversationFilter {
  /** The agent of the last turn; before the first one, the agent that was set for the conversation. */
  readonly agent?: string | undefined;
  /** One of these states. */
  readonly state?: ConversationState | readonly ConversationState[] | undefined;
  /** Changed at this time or later. A time is in milliseconds, a `Date`, or text such as 2026-01-31 or 2026-01-31T12:00:00Z. */
  readonly since?: number | string | Date | undefined;
  /** Changed before this time. */
  readonly until?: number | string | Date | undefined;
  /** Only those that are pinned; `false`: only the others. */
  readonly pinned?: boolean | undefined;
  /** Only those that were put away; `false`: only the others. */
  readonly putAway?: boolean | undefined;
}

/** A checked filter. A condition that was not given is left out. */
export interface CheckedFilter {
  readonly agent?: string;
  readonly states?: readonly ConversationState[];
  readonly since?: number;
  readonly until?: number;
  readonly pinned?: boolean;
  readonly putAway?: boolean;
}

/** Throws `invalid`. */
export function checkFilter({ agent, state, since, until, pinned, putAway }: ConversationFilter): CheckedFilter {
  const times = given({ since: checkTime(since, 'since'), until: checkTime(until, 'until') });
  const states = state === undefined ? {} : { states: checkStates(state) };
  const flags = pinned === undefined && putAway === undefined ? {} : checkArrangement({ pinned, putAway });
  return { ...(agent === undefined ? {} : { agent: checkText(agent, 'agent') }), ...states, ...times, ...flags };
}

/** Throws `invalid` when conversations are found by `by` and a filter is given as well. */
export function checkUnfiltered(by: string, filter: ConversationFilter): void {
  const { agent, state, since, until, pinned, putAway } = filter;
  const [name] = Object.keys(given({ agent, state, since, until, pinned, putAway }));
  if (name === undefined) return;
  throw new ThroughlineError('invalid', `Conversations are listed by "${by}" or by "${name}", not by both.`);
}

function checkStates(state: unknown): ConversationState[] {
  const states: unknown[] = Array.isArray(state) ? state : [state];
  const known = CONVERSATION_STATES.filter((one) => states.includes(one));
  const unknown = states.find((one) => !known.some((other) => other === one));
  if (unknown === undefined && known.length > 0) return known;
  throw new ThroughlineError('invalid', `There is no conversation state ${shown(unknown ?? state)}.`, {
    hint: `States: ${CONVERSATION_STATES.join(', ')}.`,
  });
}

/** A day (UTC), or a time with its zone. */
export const TIME = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:\d\d))?$/;

/** The last time with a year of four digits. */
const LATEST = Date.UTC(9999, 11, 31, 23, 59, 59, 999);

/** In milliseconds; a day is its beginning (UTC). */
function checkTime(value: unknown, name: string): number | undefined {
  if (value === undefined) return undefined;
  // `Date` takes February 30 as March 2.
  const isText = typeof value === 'string' && TIME.test(value) && isDay(value.slice(0, 10));
  const time = value instanceof Date ? value.getTime() : isText ? Date.parse(value) : value;
  if (typeof time === 'number' && Number.isSafeInteger(time) && time >= 0 && time <= LATEST) return time;
  const example = 'milliseconds, or like 2026-01-31 or 2026-01-31T12:00:00Z';
  throw new ThroughlineError('invalid', `"${name}" must be a time: ${example}, not ${shown(value)}.`);
}

/** The fields of a conversation that are shown as they are stored. */
export interface ShownConversation {
  readonly id: string;
  readonly owner: string;
  /** The caller's own name for it, unique per owner; null: it has none. */
  readonly key: string | null;
  readonly title: string;
  /** Who chose the title: `caller`, the `agent`, or the first line of the first `prompt`; `none`: it has no title. */
  readonly titleSource: TitleSource;
  /** Whether it stays at the top of its project in a list. */
  readonly pinned: boolean;
  /** Whether lists leave it out. Its next prompt brings it back. */
  readonly putAway: boolean;
  /** The agent of the first turn when the turn names none; null: the settings' default. */
  readonly agent: string | null;
  /** `worker`: Throughline runs its turns. `tracker`: a program of the caller does, and prompts are refused here. */
  readonly driver: Driver;
  /** The working directory that the caller named; null: a directory of its own. */
  readonly cwd: string | null;
  /** The restore settings of this conversation alone; the rest comes from the current settings. */
  readonly restore: RestoreOverride;
  /** How much may be spent in it on a day (UTC), within what the settings allow; null: it has no limit of its own. */
  readonly limitPerDay: Budget | null;
  /** What was chosen for the prompts of its agent: model, mode, config options. Empty: nothing. */
  readonly choices: KeptChoices;
  /** The number of the last turn that was sent and has ended, whatever the outcome; 0: none. */
  readonly head: number;
  /** How many turns were sent and have ended: the history. */
  readonly historyCount: number;
  /** The number of its last event. */
  readonly lastSeq: number;
  /** The log that `lastSeq` counts in. When it changes, a number stands for another event than before: read again from the start. */
  readonly logId: string;
  /** What it is doing, or how its last turn ended. */
  readonly state: ConversationState;
  /** The agent of its last turn, which gets the next prompt that names none; before the first turn, `agent`. */
  readonly lastAgent: string | null;
  /** Turns that have not ended. */
  readonly open: number;
  /** Questions of agents that wait for an answer. */
  readonly openPermissions: number;
  /** What all its turns have used. */
  readonly usage: Usage;
  readonly createdAt: number;
  readonly updatedAt: number;
}

/** A durable, ordered sequence of turns. Owner, sandbox, directory and place never change (R8). */
export interface Conversation extends ShownConversation {
  readonly sandbox: string;
  readonly place: string;
  /** The directory that `cwd` counts to in a list, if it is another one: `cwd` is in a linked worktree of its repository. Null: none. */
  readonly project: string | null;
  readonly parent: Parent | null;
}

/** Where a fork was taken: the parent's turn and the hash of the records copied up to it. */
export interface Parent {
  readonly conversation: string;
  readonly n: number;
  readonly hash: string;
}

/** Whether a title from `next` may replace one from `current`. A prompt only names a conversation that has no title. */
export function titleWins(next: TitleSource, current: TitleSource): boolean {
  const rise = TITLE_SOURCES.indexOf(next) - TITLE_SOURCES.indexOf(current);
  return next === 'prompt' ? rise > 0 : rise >= 0;
}

/** Throws `refused` for a conversation whose turns a program runs itself, through the tracker. */
export function checkDriver({ driver, key, id }: Conversation): void {
  if (driver !== 'tracker') return;
  throw new ThroughlineError('refused', `"${key ?? id}" is driven by another program through a ConversationTracker.`, {
    hint: 'Use another key, or fork it to continue here.',
  });
}
