import * as z from 'zod';
import { MOST_QUEUED } from '../../core/queue.ts';
import { ANSWERED_FROM } from '../../core/turn/permission.ts';
import { After, Before, Flag, Limit, TurnNumber, Wait } from '../parameters.ts';
import { namedObject } from '../registry.ts';
import type { OperationName } from '../routes.ts';
import { Choices, Count, Id, TimeLimits, TurnRestore } from '../values/common.ts';
import { TurnRecord } from '../values/portable.ts';
import { Receipt, Restore } from '../values/session.ts';
import {
  Denial,
  Permission,
  PermissionMode,
  PromptInput,
  Told,
  Tool,
  Turn,
  TurnOutline,
  TurnView,
} from '../values/turn.ts';
import { FirstSettings } from './conversations.ts';
import { MEBIBYTE, type Operation } from './operation.ts';

const optional = z.exactOptional;

const Submitted = namedObject('Submitted', { turn: Turn, seq: Count, duplicate: z.boolean() });

const TurnRange = z.strictObject({ after: optional(After), before: optional(Before), limit: optional(Limit) });

export const turns = {
  submit: {
    summary:
      'Stores a prompt and answers at once. Follow the events after `seq` to see what happens. The first prompt to a new key ' +
      'creates the conversation. `create`: false: 404 instead; true: also for a key that looks like an id (a UUIDv7); a value: with ' +
      'these settings. ' +
      '`model`, `mode`, `config`: for this turn alone; `mode` and `config` need the scope approve.',
    scope: 'prompt',
    body: namedObject('NewTurn', {
      prompt: PromptInput,
      create: optional(z.union([z.boolean(), FirstSettings])),
      requestId: optional(Id),
      agent: optional(Id),
      session: optional(Id),
      newSession: optional(Id),
      restore: optional(TurnRestore),
      permissions: optional(PermissionMode),
      limits: optional(TimeLimits),
      deliverTo: optional(Id),
      ...Choices.shape,
    }),
    mostBytes: 8 * MEBIBYTE,
    begins: true,
    status: 202,
    answer: Submitted,
  },
  listTurns: {
    summary:
      'Lists turns with their answers, by number, from the first or after `after`. `before`: the last ones before a number, or ' +
      'before the `end`, by number as well. A page of large turns is short: continue until a page is empty.',
    scope: 'read',
    query: TurnRange,
    answer: namedObject('Turns', { turns: z.array(TurnView) }),
  },
  listOutline: {
    summary:
      'Lists turns without their texts: state, agent, session, how it was restored, usage. For drawing a long conversation, in ' +
      'pages as the turns.',
    scope: 'read',
    query: TurnRange,
    answer: namedObject('Outline', { turns: z.array(TurnOutline) }),
  },
  listRecords: {
    summary:
      'Lists the records of the history, by number: the results of all turns that were sent. In pages as the turns: `after`, or ' +
      '`before` to read backwards.',
    scope: 'read',
    query: TurnRange,
    answer: namedObject('Records', { records: z.array(TurnRecord) }),
  },
  listRestores: {
    summary:
      'Lists the receipts of a page of turns, all of each turn, and those of warm-ups after it: how each session was restored. In pages ' +
      'as the turns; `limit` counts the turns that have any. `n`: the turn, or the last one before the warm-up.',
    scope: 'read',
    query: TurnRange,
    answer: namedObject('Restores', { restores: z.array(Restore) }),
  },
  listQueue: {
    summary:
      'Lists the queued turns: accepted and not begun, in the order in which they will run. Continue after the last turn (`after`: its ' +
      'number) until a page is empty.',
    scope: 'read',
    query: z.strictObject({ after: optional(After), limit: optional(Limit) }),
    answer: namedObject('Queue', { queue: z.array(Turn) }),
  },
  requeue: {
    summary:
      'Edits, moves and drops queued turns in one step. `turns` names every queued turn, in the wanted order. Turns keep their ' +
      'numbers: one that is edited, or moved behind a later one, ends as cancelled, and a new turn with its options takes its place ' +
      '(`replaces`, `replacedBy`). 409: other turns are queued than those named, and nothing is changed.',
    scope: 'prompt',
    body: namedObject('NewQueue', {
      turns: z
        .array(z.strictObject({ turn: Id, prompt: optional(PromptInput), drop: optional(z.boolean()) }))
        .max(MOST_QUEUED),
      requestId: optional(Id),
    }),
    mostBytes: 8 * MEBIBYTE,
    begins: true,
    answer: namedObject('Requeued', {
      queue: z.array(z.strictObject({ turnId: z.string(), n: Count, replaces: z.string().nullable() })),
      cancelled: z.array(z.strictObject({ turnId: z.string(), n: Count, replacedBy: z.string().nullable() })),
      duplicate: z.boolean(),
    }),
  },
  getTurn: {
    summary: 'Returns one turn.',
    scope: 'read',
    answer: Turn,
  },
  answerOf: {
    summary:
      'Returns the answer of an ended turn, with the receipt of its last attempt (null: no agent was asked), the tools that ' +
      'were used, and the questions that were denied. 409: the turn has not ended. `wait`: waits for its end, for so many seconds at most.',
    scope: 'read',
    query: z.strictObject({ wait: optional(Wait) }),
    answer: namedObject('Answer', {
      turn: Turn,
      reply: z.string(),
      receipt: Receipt.nullable(),
      tools: z.array(Tool),
      denied: z.array(Denial),
    }),
  },
  listPending: {
    summary:
      'Lists turns that were accepted with `deliverTo` and are not reported as delivered yet, whether they have ended or not, oldest ' +
      'first. `after`: the id of the last turn of the previous page; continue until a page is empty.',
    scope: 'read',
    query: z.strictObject({ after: optional(Id), limit: optional(Limit) }),
    answer: namedObject('Pending', { pending: z.array(z.strictObject({ turn: Turn, seq: Count })) }),
  },
  setDelivered: {
    summary:
      'Reports that the answer of a turn was delivered: it is no longer pending. May be repeated. 409: the turn has not ended.',
    scope: 'prompt',
    answer: Turn,
  },
  told: {
    summary:
      'Returns exactly what the session of a turn was told with its prompt, up to 64 MiB, in the last attempt that was sent or in ' +
      '`attempt`: a transcript that was put into the storage of the agent, prompts that were replayed, and last the prompt with ' +
      'the block before it. Each part has its SHA-256 hash, which was checked: of the text of a transcript, or of the JSON of the ' +
      'content of a prompt.',
    scope: 'read',
    heavy: 'conversation',
    query: z.strictObject({ attempt: optional(After) }),
    answer: Told,
  },
  cancel: {
    summary: 'Cancels a turn and returns it. A running one ends a little later.',
    scope: 'prompt',
    answer: Turn,
  },
  retry: {
    summary:
      'Submits the prompt of an ended turn again, as a new turn. `permissions`: the default is that of the ended turn.',
    scope: 'prompt',
    body: namedObject('Retry', { requestId: optional(Id), permissions: optional(PermissionMode) }),
    begins: true,
    status: 202,
    answer: Submitted,
  },
  listPermissions: {
    summary:
      'Lists permissions, oldest first, with who answered them. `open`: only those that wait for an answer, or only the ' +
      'others. `fromTurn`, `toTurn`: only those of these turns of the `conversation`, by number. `after`: the id of the last one of the previous page; continue until a page is empty.',
    scope: 'read',
    query: z.strictObject({
      conversation: optional(Id),
      turn: optional(Id),
      fromTurn: optional(TurnNumber),
      toTurn: optional(TurnNumber),
      open: optional(Flag),
      after: optional(Id),
      limit: optional(Limit),
    }),
    answer: namedObject('Permissions', { permissions: z.array(Permission) }),
  },
  getPermission: {
    summary: 'Returns one permission, with its answer.',
    scope: 'read',
    answer: Permission,
  },
  answer: {
    summary:
      'Answers a permission. The first answer wins, and is recorded with who gave it, when, and `from` where, if that is told. 409: another ' +
      'answer counted, and `detail` says which and whose; `GET` of the permission has it, too.',
    scope: 'approve',
    body: namedObject('PermissionAnswer', { optionId: Id, from: optional(z.enum(ANSWERED_FROM)) }),
    answer: Permission,
  },
} as const satisfies Partial<Record<OperationName, Operation>>;
