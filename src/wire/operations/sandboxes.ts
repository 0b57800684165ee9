import * as z from 'zod';
import { Flag, Limit } from '../parameters.ts';
import { namedObject } from '../registry.ts';
import type { OperationName } from '../routes.ts';
import { Id } from '../values/common.ts';
import { Sandbox, SandboxesDiskUse, SandboxUse, SandboxView } from '../values/sandbox.ts';
import type { Operation } from './operation.ts';

export const sandboxes = {
  listSandboxes: {
    summary:
      'Lists the sandboxes of the caller, newest first. `before`: the id of the last one of the previous page. Continue until a page is empty. ' +
      '`diskUse`: how many there are in all, and the bytes of those that were measured.',
    scope: 'read',
    query: z.strictObject({ limit: z.exactOptional(Limit), before: z.exactOptional(Id) }),
    answer: namedObject('Sandboxes', { sandboxes: z.array(Sandbox), diskUse: SandboxesDiskUse }),
  },
  showSandbox: {
    summary:
      'Returns a sandbox, by its id or its name, with what was set up in it and the conversations that work in it (at most 100). ' +
      '`measure`: its size is measured now, unless it was within the last 3 seconds; needs the scope `prompt`.',
    scope: 'read',
    query: z.strictObject({ measure: z.exactOptional(Flag) }),
    answer: SandboxView,
  },
  openSandbox: {
    summary: 'Makes the shared sandbox of this name if it is missing, and sets it up. May take as long as its set-up.',
    scope: 'prompt',
    heavy: 'sandbox',
    begins: true,
    body: namedObject('NewSandbox', { name: Id }),
    answer: Sandbox,
  },
  restSandbox: {
    summary:
      'Puts a sandbox to rest: ends the sessions that wait for a prompt in it, and stops what keeps it running. The next turn reopens it. 409 while it is used.',
    scope: 'prompt',
    heavy: 'sandbox',
    answer: Sandbox,
  },
  removeSandbox: {
    summary:
      'Deletes a sandbox with everything in it. 409 while it is used. Refused when unsaved work is in it, unless `force`: files in no git repository, uncommitted ' +
      'changes, unpushed commits.',
    scope: 'admin',
    heavy: 'sandbox',
    query: z.strictObject({ force: z.exactOptional(Flag) }),
    answer: namedObject('RemovedSandbox', { sandboxId: z.string() }),
  },
  execInSandbox: {
    summary:
      'Runs a command in a sandbox, as agents run there, for at most ten minutes, with the set-up that the sandbox needs first. Returns its exit ' +
      'code and the end of its output. Nobody is asked for permission.',
    scope: 'admin',
    heavy: 'sandbox',
    begins: true,
    body: namedObject('NewCommand', { command: z.array(z.string()).min(1).max(1_000) }),
    answer: namedObject('ExecResult', {
      ...{ code: z.int().nullable(), signal: z.string().nullable(), timedOut: z.boolean() },
      ...{ stdout: z.string(), stderr: z.string(), cut: z.boolean(), ms: z.number() },
    }),
  },
  sandboxOf: {
    summary: 'Returns where a conversation works: its owner, its sandbox, itself, and the session that it used last.',
    scope: 'read',
    answer: SandboxUse,
  },
} as const satisfies Partial<Record<OperationName, Operation>>;
