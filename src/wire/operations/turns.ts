import * as z from 'zod';
import { After, Flag, InConversation, InPermission, InTurn, Limit } from '../parameters.ts';
import { named } from '../registry.ts';
import { Count, Id, RestoreOverride } from '../values/common.ts';
import { Receipt } from '../values/session.ts';
import { Permission, PermissionMode, Prompt, Turn } from '../values/turn.ts';
import { MEBIBYTE, type Operation } from './operation.ts';

const optional = z.exactOptional;

const Submitted = named('Submitted', z.strictObject({ turn: Turn, seq: Count, duplicate: z.boolean() }));

export const turns = {
  submit: {
    method: 'POST',
    path: '/conversations/{conversation}/turns',
    summary: 'Stores a prompt and answers at once. Follow the events after `seq` to see what happens.',
    scope: 'prompt',
    params: InConversation,
    body: named(
      'NewTurn',
      z.strictObject({
        prompt: z.union([z.string().min(1), Prompt]),
        requestId: optional(Id),
        agent: optional(Id),
        session: optional(Id),
        restore: optional(RestoreOverride),
        permissions: optional(PermissionMode),
      }),
    ),
    mostBytes: 8 * MEBIBYTE,
    begins: true,
    status: 202,
    answer: Submitted,
  },
  listTurns: {
    method: 'GET',
    path: '/conversations/{conversation}/turns',
    summary:
      'Lists turns by number. A page of large turns is short: continue after its last turn until a page is empty.',
    scope: 'read',
    params: InConversation,
    query: z.strictObject({ after: optional(After), limit: optional(Limit) }),
    status: 200,
    answer: named('Turns', z.strictObject({ turns: z.array(Turn) })),
  },
  getTurn: {
    method: 'GET',
    path: '/turns/{turn}',
    summary: 'Returns one turn.',
    scope: 'read',
    params: InTurn,
    status: 200,
    answer: Turn,
  },
  answerOf: {
    method: 'GET',
    path: '/turns/{turn}/answer',
    summary: 'Returns the answer of an ended turn, with the receipt of its last attempt.',
    scope: 'read',
    params: InTurn,
    status: 200,
    answer: named('Answer', z.strictObject({ turn: Turn, reply: z.string(), receipt: Receipt })),
  },
  cancel: {
    method: 'POST',
    path: '/turns/{turn}/cancel',
    summary: 'Cancels a turn and returns it. A running one ends a little later.',
    scope: 'prompt',
    params: InTurn,
    status: 200,
    answer: Turn,
  },
  retry: {
    method: 'POST',
    path: '/turns/{turn}/retry',
    summary: 'Submits the prompt of an ended turn again, as a new turn.',
    scope: 'prompt',
    params: InTurn,
    body: named('Retry', z.strictObject({ requestId: optional(Id) })),
    begins: true,
    status: 202,
    answer: Submitted,
  },
  listPermissions: {
    method: 'GET',
    path: '/permissions',
    summary:
      'Lists permissions, oldest first, with who answered them. `open`: only those that wait for an answer, or only the ' +
      'others. `after`: the id of the last one of the previous page; continue until a page is empty.',
    scope: 'read',
    query: z.strictObject({
      conversation: optional(Id),
      open: optional(Flag),
      after: optional(Id),
      limit: optional(Limit),
    }),
    status: 200,
    answer: named('Permissions', z.strictObject({ permissions: z.array(Permission) })),
  },
  getPermission: {
    method: 'GET',
    path: '/permissions/{permission}',
    summary: 'Returns one permission, with its answer.',
    scope: 'read',
    params: InPermission,
    status: 200,
    answer: Permission,
  },
  answer: {
    method: 'POST',
    path: '/permissions/{permission}',
    summary: 'Answers a permission. The first answer wins, and is recorded with who gave it.',
    scope: 'approve',
    params: InPermission,
    body: named('PermissionAnswer', z.strictObject({ optionId: Id })),
    status: 200,
    answer: Permission,
  },
} as const satisfies Record<string, Operation>;
