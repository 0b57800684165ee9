import * as z from 'zod';
import { After, Flag, InConversation, InPermission, InTurn, Limit } from '../parameters.ts';
import { named } from '../registry.ts';
import { Count, Id, RestoreOverride } from '../values/common.ts';
import { Prompt } from '../values/prompt.ts';
import { Receipt } from '../values/session.ts';
import { Permission, PermissionMode, Turn } from '../values/turn.ts';
import { MEBIBYTE, type Operation } from './operation.ts';

const optional = z.exactOptional;

const Submitted = named('Submitted', z.strictObject({ turn: Turn, seq: Count, duplicate: z.boolean() }));

export const turns = {
  submit: {
    method: 'POST',
    path: '/conversations/{conversation}/turns',
    summary: 'Accepts a prompt durably and answers at once; follow the events after `seq` to see what becomes of it.',
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
    summary: 'Turns by number, rising. A page of large ones is short: go on after its last until one is empty.',
    scope: 'read',
    params: InConversation,
    query: z.strictObject({ after: optional(After), limit: optional(Limit) }),
    status: 200,
    answer: named('Turns', z.strictObject({ turns: z.array(Turn) })),
  },
  getTurn: {
    method: 'GET',
    path: '/turns/{turn}',
    summary: 'One turn.',
    scope: 'read',
    params: InTurn,
    status: 200,
    answer: Turn,
  },
  answerOf: {
    method: 'GET',
    path: '/turns/{turn}/answer',
    summary: 'The answer of a turn that has ended, with the receipt of its last attempt.',
    scope: 'read',
    params: InTurn,
    status: 200,
    answer: named('Answer', z.strictObject({ turn: Turn, reply: z.string(), receipt: Receipt })),
  },
  cancel: {
    method: 'POST',
    path: '/turns/{turn}/cancel',
    summary: 'Asks a turn to stop. Answers with the turn as it is then; a running one ends a little later.',
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
      'Questions that agents have asked, the oldest first, with who answered them; `open`: only those that wait, or only the ' +
      'others. `after` is the id of the last one of the page before: go on until one is empty.',
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
    summary: 'One question, with its answer when it has one.',
    scope: 'read',
    params: InPermission,
    status: 200,
    answer: Permission,
  },
  answer: {
    method: 'POST',
    path: '/permissions/{permission}',
    summary: 'Answers a question. The first answer wins, and is recorded with who gave it.',
    scope: 'approve',
    params: InPermission,
    body: named('PermissionAnswer', z.strictObject({ optionId: Id })),
    status: 200,
    answer: Permission,
  },
} as const satisfies Record<string, Operation>;
