import * as z from 'zod';
import { Limit } from '../parameters.ts';
import { namedObject } from '../registry.ts';
import type { OperationName } from '../routes.ts';
import { Id } from '../values/common.ts';
import { Sandbox, SandboxUse, SandboxView } from '../values/sandbox.ts';
import type { Operation } from './operation.ts';

export const sandboxes = {
  listSandboxes: {
    summary:
      'Lists the sandboxes of the caller, newest first. `before`: the id of the last one of the previous page. Continue until a page is empty.',
    scope: 'read',
    query: z.strictObject({ limit: z.exactOptional(Limit), before: z.exactOptional(Id) }),
    answer: namedObject('Sandboxes', { sandboxes: z.array(Sandbox) }),
  },
  showSandbox: {
    summary:
      'Returns a sandbox, by its id or its name, with what was set up in it and the conversations that work in it (at most 100).',
    scope: 'read',
    answer: SandboxView,
  },
  sandboxOf: {
    summary: 'Returns where a conversation works: its owner, its sandbox, itself, and the session that it used last.',
    scope: 'read',
    answer: SandboxUse,
  },
} as const satisfies Partial<Record<OperationName, Operation>>;
