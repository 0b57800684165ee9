import type { Conversation, Driver, Parent, TitleSource } from '../conversation.ts';
import type { Budget } from '../limits/budget.ts';
import type { Delayed } from '../limits/slots.ts';
import type { RestoreOverride } from '../restore/restore-settings.ts';
import type { Lock, Summary } from '../summary.ts';
import type { Hindrance, Stranded } from '../turn/standing.ts';
import type { Usage } from '../turn/usage.ts';

/** A conversation as all interfaces show it. Where it is stored and which sandbox it has stay inside. */
export interface PublicConversation {
  readonly id: string;
  readonly owner: string;
  /** The caller's own name for it, unique per owner; null: it has none. */
  readonly key: string | null;
  readonly title: string;
  /** Who chose the title: `caller`, the `agent`, or the first line of the first `prompt`; `none`: it has no title. */
  readonly titleSource: TitleSource;
  /** The agent of the first turn when the turn names none; null: the settings' default. */
  readonly agent: string | null;
  /** `worker`: Throughline runs its turns. `tracker`: a program of the caller does, and prompts are refused here. */
  readonly driver: Driver;
  /** The working directory that the caller named; null: a directory of its own. */
  readonly cwd: string | null;
  /** What was set for this conversation alone. */
  readonly restore: RestoreOverride;
  /** How much may be spent in it on a day (UTC), within what the settings allow; null: it has no limit of its own. */
  readonly limitPerDay: Budget | null;
  /** The conversation that it was forked from; null: none. */
  readonly parent: PublicParent | null;
  /** The number of the last turn that was sent and has ended; 0: none. */
  readonly head: number;
  /** How many turns were sent and have ended. */
  readonly historyCount: number;
  /** The number of its last event. */
  readonly lastSeq: number;
  /** The log that `lastSeq` counts in. When it changes, a number stands for another event than before: read again from the start. */
  readonly logId: string;
  /** Turns that have not ended. */
  readonly open: number;
  /** Why no process runs them; null: there is none, or they are run. */
  readonly stranded: Stranded | null;
  /** Why they have not begun although a process will run them; null: they have, or are about to. */
  readonly delayed: Delayed | null;
  readonly createdAt: number;
  readonly updatedAt: number;
}

/** Where a fork was taken: after turn `n` of that conversation. */
export interface PublicParent {
  readonly conversationId: string;
  readonly n: number;
}

/** A conversation at a glance. */
export interface PublicSummary {
  readonly conversationId: string;
  readonly key: string | null;
  readonly title: string;
  /** Completed turns. */
  readonly contexts: number;
  /** The numbers and times of the first and the last completed turn; null: none yet. */
  readonly first: { readonly n: number; readonly at: number } | null;
  readonly last: { readonly n: number; readonly at: number } | null;
  /** How many sessions of agents the conversation has lived in, and how often it moved from one to another. */
  readonly sessions: number;
  readonly changes: number;
  /** Turns that have not ended. */
  readonly open: number;
  /** Why no process runs them; null: there is none, or they are run. */
  readonly stranded: Stranded | null;
  /** Why they have not begun although a process will run them; null: they have, or are about to. */
  readonly delayed: Delayed | null;
  /** Null: no process holds it. */
  readonly lock: PublicLock | null;
  readonly usage: Usage;
}

/** The process that runs the turns of a conversation now. */
export interface PublicLock {
  /** For people: `process 4711`. */
  readonly holder: string;
  /** Milliseconds until the lock expires unless its holder renews it. */
  readonly expiresIn: number;
}

export function toPublicConversation(stored: Conversation, { stranded, delayed }: Hindrance): PublicConversation {
  const { id, owner, key, title, titleSource, agent, driver, cwd, restore, limitPerDay, parent } = stored;
  const { head, historyCount, lastSeq, logId, open, createdAt, updatedAt } = stored;
  return {
    ...{ id, owner, key, title, titleSource, agent, driver, cwd, restore, limitPerDay },
    parent: parent && toPublicParent(parent),
    ...{ head, historyCount, lastSeq, logId, open, stranded, delayed, createdAt, updatedAt },
  };
}

/** Without the hash of the copied records. */
export function toPublicParent({ conversation, n }: Parent): PublicParent {
  return { conversationId: conversation, n };
}

export function toPublicSummary(stored: Summary, { stranded, delayed }: Hindrance): PublicSummary {
  const { conversation, key, title, contexts, first, last, sessions, changes, open, lock, usage } = stored;
  return {
    ...{ conversationId: conversation, key, title, contexts, first, last, sessions, changes, open, stranded, delayed },
    lock: lock && toPublicLock(lock),
    usage,
  };
}

export function toPublicLock({ pid, expiresIn }: Lock): PublicLock {
  return { holder: processLabel(pid), expiresIn };
}

/** How the holder of a lock is called. */
export function processLabel(pid: number): string {
  return `process ${pid}`;
}
