import * as z from 'zod';
import { After, Before, ConversationStates, Cursor, Flag, Limit, TimeText, TurnNumber, Words } from '../parameters.ts';
import { namedObject } from '../registry.ts';
import type { OperationName } from '../routes.ts';
import { BudgetInput, Config, Count, Id, RestoreOverride, TurnRestore } from '../values/common.ts';
import { Changes, Conversation, Directories, Erased, Files, Kept, Summary } from '../values/conversation.ts';
import { ConversationEvent } from '../values/event.ts';
import { ExportedConversation } from '../values/portable.ts';
import { ConversationView } from '../values/rest.ts';
import { Receipt, Session } from '../values/session.ts';
import { MEBIBYTE, type Operation } from './operation.ts';

const optional = z.exactOptional;
const Name = z.string().min(1).max(512);
const Directory = z.string().min(1).max(4_096);
const ChainHead = z.string().min(1).max(80);

const Extent = z.strictObject({ seq: Count, turns: Count });

/** The settings of a new conversation, apart from its key. */
export const FirstSettings = namedObject('FirstSettings', {
  agent: optional(Id),
  title: optional(Name),
  cwd: optional(Directory),
  sandbox: optional(Name),
  worktree: optional(z.boolean()),
  restore: optional(RestoreOverride),
  limitPerDay: optional(BudgetInput.nullable()),
  model: optional(Id.nullable()),
  mode: optional(Id.nullable()),
  config: optional(Config.nullable()),
});

export const conversations = {
  listConversations: {
    summary:
      'Lists conversations, most recently changed first. Pass `next` as `before` for the next page; it is null on the last one. ' +
      'Filters: `agent` (of the last turn), `state` (one or more, with commas), `since` (changed then or later) and `until` (changed ' +
      'before), each a day such as 2026-01-31 (UTC) or a time such as 2026-01-31T12:00:00Z, `pinned` and ' +
      '`putAway` (true or false; left out: all). Instead of these, `q`: only ' +
      'conversations whose title or turns contain all the words; `session`: only those that have used this session (the ' +
      "agent's id), the one that can still use it first. The answer's `putAway`: how many conversations of this owner are put away.",
    scope: 'read',
    query: z.strictObject({
      limit: optional(Limit),
      before: optional(Cursor),
      agent: optional(Id),
      state: optional(ConversationStates),
      since: optional(TimeText),
      until: optional(TimeText),
      pinned: optional(Flag),
      putAway: optional(Flag),
      q: optional(Words),
      session: optional(Id),
    }),
    answer: namedObject('Conversations', {
      conversations: z.array(Conversation),
      next: z.string().nullable(),
      putAway: Count,
    }),
  },
  ensureConversation: {
    summary:
      'Finds the conversation by its key, or creates it. Refused when it exists with another directory, sandbox or restore setting. ' +
      '`worktree`: works in a worktree of the git repository that `cwd` is in. ' +
      '`model`, `mode`, `config`: for the turns of its agent from now on, null to remove them; `mode` and `config` need the scope approve.',
    scope: 'prompt',
    body: namedObject('NewConversation', {
      key: optional(Name),
      ...FirstSettings.shape,
    }),
    begins: true,
    answer: Conversation,
  },
  getConversation: {
    summary: 'Returns one conversation, by its id or its key.',
    scope: 'read',
    answer: Conversation,
  },
  changeConversation: {
    summary:
      'Changes the title of a conversation, or how lists show it: `pinned` keeps it at the top of its project, and `putAway` leaves it out ' +
      'until its next prompt.',
    scope: 'prompt',
    body: namedObject('ConversationChange', {
      title: optional(Name),
      pinned: optional(z.boolean()),
      putAway: optional(z.boolean()),
    }),
    answer: Conversation,
  },
  moveConversation: {
    summary:
      'Moves a conversation whose data home is gone to the place of this server. It continues in an empty sandbox, without the files of its ' +
      'work, and the receipt of the next turn says so (`filesLeft`). 409 while a process runs at its old place.',
    scope: 'admin',
    answer: Conversation,
  },
  eraseConversation: {
    summary:
      'Deletes all that was said in a conversation. Refused while a turn is open. Its chain can still be verified. `sandbox`: also ' +
      'deletes its own sandbox, with the work and the sessions of its agents there; a worktree with changes that are not committed is refused, ' +
      'unless `discard` is set. `head`: what `verify` returned; 409 if something was added since, so that an export made in between is complete. ' +
      '`remains`: what agents wrote that is still there.',
    scope: 'admin',
    heavy: 'conversation',
    query: z.strictObject({ sandbox: optional(Flag), discard: optional(Flag), head: optional(ChainHead) }),
    answer: Erased,
  },
  summarise: {
    summary: 'Returns an overview of a conversation. As fast for long conversations as for short ones.',
    scope: 'read',
    answer: Summary,
  },
  show: {
    summary: 'Returns a whole conversation, up to 64 MiB: turns with their answers, sessions and receipts.',
    scope: 'read',
    heavy: 'conversation',
    answer: ConversationView,
  },
  listSessions: {
    summary:
      'Returns the sessions of a conversation, most recently used first, and every receipt, up to 64 MiB. `receipts=false`: without ' +
      'them; `…/restores` lists them in pages.',
    scope: 'read',
    heavy: 'conversation',
    query: z.strictObject({ receipts: optional(Flag) }),
    answer: namedObject('Lineage', { sessions: z.array(Session), receipts: z.array(Receipt) }),
  },
  listEvents: {
    summary:
      'Lists stored events backwards: the last ones before a number, or before the `end` (also when `before` is left out), by ' +
      'number. As fast for long conversations as for short ones. `turn`: only those of the turn of this number. Continue before ' +
      'the first one until a page is empty. 409 `log_changed`: there is no such event, or the log is not `log`.',
    scope: 'read',
    query: z.strictObject({
      before: optional(Before),
      turn: optional(TurnNumber),
      log: optional(Id),
      limit: optional(Limit),
    }),
    answer: namedObject('Events', { events: z.array(ConversationEvent) }),
  },
  follow: {
    summary:
      'Streams events after a number (`after`, or the header Last-Event-ID), without gaps or duplicates, and new ones as they come. ' +
      '409 `log_changed`: there is no such event, or the log is not `log`.',
    scope: 'read',
    query: z.strictObject({ after: optional(After), log: optional(Id) }),
    stream: true,
    answer: ConversationEvent,
  },
  warm: {
    summary:
      'Restores the session ahead of a prompt; while a turn runs, after it. The receipt is null when another process holds the ' +
      'conversation, or turns may be waiting for a slot.',
    scope: 'prompt',
    body: namedObject('WarmUp', { agent: optional(Id), restore: optional(TurnRestore) }),
    begins: true,
    answer: namedObject('Warmed', { receipt: Receipt.nullable() }),
  },
  kill: {
    summary:
      'Ends the processes of the live sessions, and returns these sessions. Nothing is lost: the next prompt restores the context. A ' +
      'running turn is interrupted.',
    scope: 'prompt',
    answer: namedObject('Killed', { sessions: z.array(Session) }),
  },
  changes: {
    summary:
      'Returns what the agent changed in the directory of the conversation: the differences from the last commit of the git repository there, ' +
      'by file, and untracked files. At most 500 files, 256 KiB of each and 4 MiB in all; `patch` is null beyond that, and for a file that is ' +
      'not text. 404: there is no repository. Needs `prompt`: callers with that scope can have the agent show the same files.',
    scope: 'prompt',
    heavy: 'conversation',
    answer: Changes,
  },
  keepChanges: {
    summary:
      'Keeps what the agent changed in the worktree of the conversation. `commit`: commits all of it with this message, on the branch of the ' +
      'worktree. `merge`: merges its commits into the branch that is checked out in the directory of the conversation, and updates the files ' +
      'there. Hooks and filters of the repository do not run. 409: a turn runs, or there is nothing to keep. 422: it has no worktree, or a ' +
      'person has to merge.',
    scope: 'approve',
    heavy: 'conversation',
    body: namedObject('Keep', { commit: optional(z.string().min(1).max(10_000)), merge: optional(z.boolean()) }),
    answer: Kept,
  },
  discardChanges: {
    summary:
      'Discards the uncommitted changes in the worktree of the conversation; ignored files stay. 409: a turn runs. 422: it has no worktree.',
    scope: 'approve',
    heavy: 'conversation',
    answer: namedObject('Discarded', { discarded: z.string() }),
  },
  listFiles: {
    summary:
      'Lists files and folders (ending with a slash) in the directory of the conversation whose paths contain `match`, the best matches ' +
      'first, at most 100; `more`: there are others. Folders such as `.git` and `node_modules` are left out unless `match` names them. Links ' +
      'are not followed. 404: the directory that the conversation was given is gone. Needs `prompt`, as `changes` does.',
    scope: 'prompt',
    query: z.strictObject({ match: optional(z.string().max(512)) }),
    answer: Files,
  },
  listDirectories: {
    summary:
      'Lists the directories in `path` that may be chosen for a conversation: below the roots that the settings name ' +
      '(`sandbox.directories`; left out: the home of whoever runs the server), the first of which is listed without `path`. `hidden`: also ' +
      'those whose name begins with a dot. Links are not followed out of the roots. 422: `path` is outside of them, or conversations ' +
      'work on other machines.',
    scope: 'admin',
    query: z.strictObject({ path: optional(z.string().max(4096)), hidden: optional(Flag) }),
    answer: Directories,
  },
  fork: {
    summary: 'Copies a conversation up to a turn into a new one; `turn` left out: up to the last one.',
    scope: 'prompt',
    heavy: 'conversation',
    body: namedObject('NewFork', {
      turn: optional(Count),
      key: optional(Name),
      title: optional(Name),
      cwd: optional(Directory),
    }),
    begins: true,
    status: 201,
    answer: Conversation,
  },
  exportConversation: {
    summary: 'Exports a conversation as one JSON value, to be imported elsewhere.',
    scope: 'read',
    heavy: 'conversation',
    answer: ExportedConversation,
  },
  importConversation: {
    summary:
      'Creates a conversation from an exported one, or from a list of messages `{role, content}`. `agent`: for messages, the agent ' +
      'that continues them.',
    scope: 'prompt',
    heavy: 'conversation',
    body: namedObject('Import', {
      exported: z.unknown(),
      key: optional(Name),
      cwd: optional(Directory),
      agent: optional(Id),
    }),
    mostBytes: 64 * MEBIBYTE,
    begins: true,
    status: 201,
    answer: Conversation,
  },
  verify: {
    summary:
      'Checks the chain of events: `broken` is the first number that does not fit, `head` the end of the chain. ' +
      '`kept` says whether the chain goes through the head that was given, `lost` how much was stored before events were lost.',
    scope: 'read',
    heavy: 'conversation',
    query: z.strictObject({ head: optional(ChainHead) }),
    answer: namedObject('Verified', {
      broken: Count.nullable(),
      head: ChainHead,
      kept: optional(z.boolean()),
      lost: optional(z.strictObject({ had: Extent, has: Extent.nullable() })),
    }),
  },
} as const satisfies Partial<Record<OperationName, Operation>>;
