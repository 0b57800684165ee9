import * as z from 'zod';
import { After, Flag, Limit, Wait } from '../parameters.ts';
import { namedObject } from '../registry.ts';
import type { OperationName } from '../routes.ts';
import { Count, Id, RestoreOverride, TimeLimits } from '../values/common.ts';
import { Receipt } from '../values/session.ts';
import { Denial, Permission, PermissionMode, Prompt, Turn, TurnView } from '../values/turn.ts';
import { MEBIBYTE, type Operation } from './operation.ts';

const optional = z.exactOptional;

const Submitted = namedObject('Submitted', { turn: Turn, seq: Count, duplicate: z.boolean() });

export const turns = {
  submit: {
    summary:
      'Stores a prompt and answers at once. Follow the events after `seq` to see what happens. The first prompt to a new key ' +
      'creates the conversation. `create`: false: 404 instead; true: also for a key that looks like an id (a UUIDv7).',
    scope: 'prompt',
    body: namedObject('NewTurn', {
      prompt: z.union([z.string().min(1), Prompt]),
      create: optional(z.boolean()),
      requestId: optional(Id),
      agent: optional(Id),
      session: optional(Id),
      newSession: optional(Id),
      restore: optional(RestoreOverride),
      permissions: optional(PermissionMode),
      limits: optional(TimeLimits),
    }),
    mostBytes: 8 * MEBIBYTE,
    begins: true,
    status: 202,
    answer: Submitted,
  },
  listTurns: {
    summary:
      'Lists turns with their answers, by number. A page of large turns is short: continue after its last turn until a page is ' +
      'empty.',
    scope: 'read',
    query: z.strictObject({ after: optional(After), limit: optional(Limit) }),
    answer: namedObject('Turns', { turns: z.array(TurnView) }),
  },
  getTurn: {
    summary: 'Returns one turn.',
    scope: 'read',
    answer: Turn,
  },
  answerOf: {
    summary:
      'Returns the answer of an ended turn, with the receipt of its last attempt (null: no agent was asked) and the questions ' +
      'that were denied. Of a turn that has not ended: 409. `wait`: waits for its end, for so many seconds at most.',
    scope: 'read',
    query: z.strictObject({ wait: optional(Wait) }),
    answer: namedObject('Answer', {
      turn: Turn,
      reply: z.string(),
      receipt: Receipt.nullable(),
      denied: z.array(Denial),
    }),
  },
  cancel: {
    summary: 'Cancels a turn and returns it. A running one ends a little later.',
    scope: 'prompt',
    answer: Turn,
  },
  retry: {
    summary: 'Submits the prompt of an ended turn again, as a new turn.',
    scope: 'prompt',
    body: namedObject('Retry', { requestId: optional(Id) }),
    begins: true,
    status: 202,
    answer: Submitted,
  },
  listPermissions: {
    summary:
      'Lists permissions, oldest first, with who answered them. `open`: only those that wait for an answer, or only the ' +
      'others. `after`: the id of the last one of the previous page; continue until a page is empty.',
    scope: 'read',
    query: z.strictObject({
      conversation: optional(Id),
      turn: optional(Id),
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
    summary: 'Answers a permission. The first answer wins, and is recorded with who gave it.',
    scope: 'approve',
    body: namedObject('PermissionAnswer', { optionId: Id }),
    answer: Permission,
  },
} as const satisfies Partial<Record<OperationName, Operation>>;
