import type { Conversation, ConversationState, Driver, Parent, TitleSource } from '../conversation.ts';
import type { Budget } from '../limits/budget.ts';
import type { Delayed } from '../limits/slots.ts';
import { processLabel } from '../process.ts';
import type { RestoreOverride } from '../restore/restore-settings.ts';
import { isWorktree } from '../sandbox/sandbox-id.ts';
import type { Lock, Summary } from '../summary.ts';
import type { KeptChoices } from '../turn/choices.ts';
import type { Hindrance, Stranded } from '../turn/standing.ts';
import type { Usage } from '../turn/usage.ts';

/**
 * A conversation as all interfaces show it. Where it is stored and which sandbox it has stay inside.
 *
 * @example
 * for (const { key, title, state } of await tl.conversations()) console.log(key, title, state);
 */
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
  /** Whether it works in a worktree of its own of the git repository that `cwd` is in. */
  readonly worktree: boolean;
  /** What was set for this conversation alone. */
  readonly restore: RestoreOverride;
  /** How much may be spent in it on a day (UTC), within what the settings allow; null: it has no limit of its own. */
  readonly limitPerDay: Budget | null;
  /** What was chosen for the prompts of its agent: model, mode, config options. Empty: nothing. */
  readonly choices: KeptChoices;
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
  /** What it is doing, or what its last turn came to. */
  readonly state: ConversationState;
  /** The agent of its last turn, which gets the next prompt that names none; before the first turn, `agent`. */
  readonly lastAgent: string | null;
  /** Turns that have not ended. */
  readonly open: number;
  /** Questions of agents that wait for an answer. */
  readonly openPermissions: number;
  /** Why no process runs them, or would run the next one; null: they are run, or would be. */
  readonly stranded: Stranded | null;
  /** Why they have not begun although a process will run them; null: they have, or are about to. */
  readonly delayed: Delayed | null;
  /** What all its turns have used. */
  readonly usage: Usage;
  readonly createdAt: number;
  readonly updatedAt: number;
}

/** Where a fork was taken: after turn `n` of that conversation. */
export interface PublicParent {
  readonly conversationId: string;
  readonly n: number;
}

/**
 * A conversation at a glance.
 *
 * @example
 * const { title, contexts, sessions } = await chat.summary();
 * console.log(`${title}: ${contexts} turns in ${sessions} sessions`);
 */
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

/**
 * The process that runs the turns of a conversation now.
 *
 * @example
 * const { lock } = await chat.summary();
 * if (lock) console.log('runs elsewhere', lock);
 */
export interface PublicLock {
  /** For people: `process 4711`, or `client NAME` for a program that tracks requests through a server. */
  readonly holder: string;
  /** Milliseconds until the lock expires unless its holder renews it. */
  readonly expiresIn: number;
}

export function toPublicConversation(stored: Conversation, { stranded, delayed }: Hindrance): PublicConversation {
  const { id, owner, key, title, titleSource, agent, driver, cwd, restore, limitPerDay, choices, parent } = stored;
  const { head, historyCount, lastSeq, logId, state, lastAgent, open, openPermissions, usage } = stored;
  const { createdAt, updatedAt } = stored;
  return {
    ...{ id, owner, key, title, titleSource, agent, driver, cwd, worktree: isWorktree(stored.sandbox) },
    ...{ restore, limitPerDay, choices },
    parent: parent && toPublicParent(parent),
    ...{ head, historyCount, lastSeq, logId, state, lastAgent, open, openPermissions, stranded, delayed, usage },
    ...{ createdAt, updatedAt },
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

export function toPublicLock({ process, expiresIn }: Lock): PublicLock {
  return { holder: processLabel(process), expiresIn };
}
