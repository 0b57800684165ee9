import type { Conversation, Parent, ShownConversation } from '../conversation.ts';
import type { Delayed } from '../limits/slots.ts';
import { holderLabel, type ProcessIdentity } from '../process.ts';
import { branchOf, isWorktree } from '../sandbox/sandbox-id.ts';
import type { Lock, ShownSummary, Summary } from '../summary.ts';
import type { Hindrance, Stranded } from '../turn/standing.ts';

/**
 * A conversation as all interfaces show it. Its place and its sandbox are not shown.
 *
 * @example
 * for (const { key, title, state } of await tl.conversations()) console.log(key, title, state);
 */
export interface PublicConversation extends ShownConversation {
  /** The project that it counts to in a list; null: it has no `cwd`, and works in a directory of its own. */
  readonly project: PublicProject | null;
  /** Whether it works in a worktree of its own of the git repository that `cwd` is in. */
  readonly worktree: boolean;
  /** The branch that its worktree was made on; null: it has no worktree of its own. */
  readonly branch: string | null;
  /** The conversation that it was forked from; null: none. */
  readonly parent: PublicParent | null;
  /** Why no process will run its turns, not even the next one; null: a process runs them, or will run the next one. */
  readonly stranded: Stranded | null;
  /** Why its open turns have not begun although a process will run them; null: they have begun or will begin soon, or there are none. */
  readonly delayed: Delayed | null;
}

/** A directory that conversations work in, or whose linked worktrees they work in. */
export interface PublicProject {
  readonly path: string;
  /** The last part of the path. */
  readonly name: string;
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
export interface PublicSummary extends ShownSummary {
  readonly conversationId: string;
  /** Why no process runs its open turns; null: there are none, or a process runs them. */
  readonly stranded: Stranded | null;
  /** Why its open turns have not begun although a process will run them; null: they have begun or will begin soon, or there are none. */
  readonly delayed: Delayed | null;
  /** Null: no process holds it. */
  readonly lock: PublicLock | null;
}

/**
 * The process that runs the turns of a conversation now.
 *
 * @example
 * const { lock } = await chat.summary();
 * if (lock) console.log('runs elsewhere', lock);
 */
export interface PublicLock {
  /** For people: `this process` or `another process`, from a server `this server`; `client NAME`: a program that tracks requests. */
  readonly holder: string;
  /** Milliseconds until the lock expires unless its holder renews it. */
  readonly expiresIn: number;
}

export function toPublicConversation(stored: Conversation, { stranded, delayed }: Hindrance): PublicConversation {
  const { id, owner, key, title, titleSource, pinned, putAway, agent, driver, cwd, sandbox } = stored;
  const { restore, limitPerDay, choices, parent } = stored;
  const { head, historyCount, lastSeq, logId, state, lastAgent, open, openPermissions, usage } = stored;
  const { createdAt, updatedAt } = stored;
  const worktree = isWorktree(sandbox);
  return {
    ...{ id, owner, key, title, titleSource, pinned, putAway, agent, driver, cwd },
    project: cwd === null ? null : toPublicProject(stored.project ?? cwd),
    ...{ worktree, branch: worktree ? branchOf(sandbox) : null },
    ...{ restore, limitPerDay, choices },
    parent: parent && toPublicParent(parent),
    ...{ head, historyCount, lastSeq, logId, state, lastAgent, open, openPermissions, stranded, delayed, usage },
    ...{ createdAt, updatedAt },
  };
}

export function toPublicProject(path: string): PublicProject {
  return { path, name: path.split('/').findLast((part) => part !== '') ?? path };
}

/** Without the hash of the copied records. */
export function toPublicParent({ conversation, n }: Parent): PublicParent {
  return { conversationId: conversation, n };
}

/** `self`: the process that shows it. */
export function toPublicSummary(
  stored: Summary,
  { stranded, delayed }: Hindrance,
  self: ProcessIdentity,
): PublicSummary {
  const { conversation, key, title, contexts, first, last, sessions, changes, open, lock, usage } = stored;
  return {
    ...{ conversationId: conversation, key, title, contexts, first, last, sessions, changes, open, stranded, delayed },
    lock: lock && toPublicLock(lock, self),
    usage,
  };
}

export function toPublicLock({ process, expiresIn }: Lock, self: ProcessIdentity): PublicLock {
  return { holder: holderLabel(process, self), expiresIn };
}
