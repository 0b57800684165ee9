import type { Budget } from './limits/budget.ts';
import type { RestoreOverride } from './restore/restore-settings.ts';

/** Where a title came from, in rising order: a higher source replaces a lower one, never the reverse. */
export const TITLE_SOURCES = ['none', 'prompt', 'agent', 'caller'] as const;
export type TitleSource = (typeof TITLE_SOURCES)[number];

/** Who runs the turns: our workers, or a program that drives its agent itself through the ConversationTracker. */
export type Driver = 'worker' | 'tracker';

/** A durable, ordered sequence of turns. Owner, sandbox, directory and place never change (R8). */
export interface Conversation {
  readonly id: string;
  readonly owner: string;
  /** The caller's own name for it, unique per owner; null: it has none. */
  readonly key: string | null;
  readonly title: string;
  readonly titleSource: TitleSource;
  /** The agent of the first turn when the turn names none; null: the settings' default. */
  readonly agent: string | null;
  readonly driver: Driver;
  readonly sandbox: string;
  /** The working directory the caller named; null: the sandbox's own `work`. */
  readonly cwd: string | null;
  readonly place: string;
  /** What was set for this conversation alone; the rest comes from the current settings. */
  readonly restore: RestoreOverride;
  /** How much may be spent in it on a day (UTC), within what the settings allow; null: it has no limit of its own. */
  readonly limitPerDay: Budget | null;
  readonly parent: Parent | null;
  /** The last turn of the history: sent and ended, whatever the outcome; 0: none. */
  readonly head: number;
  /** How many turns the history has; numbers of turns that were never sent are not in it. */
  readonly historyCount: number;
  readonly lastSeq: number;
  /** The log that `lastSeq` counts in. */
  readonly logId: string;
  /** Turns that have not ended. */
  readonly open: number;
  readonly createdAt: number;
  readonly updatedAt: number;
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
