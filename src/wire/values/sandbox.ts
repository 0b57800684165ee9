import * as z from 'zod';
import type { PublicSandbox, PublicSandboxUse, SandboxView as ViewValue } from '../../core/public/sandbox.ts';
import type { SandboxesDiskUse as DiskUseValue } from '../../ports/engine/sandboxes.ts';
import { namedObject } from '../registry.ts';
import { Count, Time } from './common.ts';

const Disk = z.strictObject({ work: Count, state: Count, copies: Count, at: Time });

export const Sandbox = namedObject('Sandbox', {
  id: z.string(),
  owner: z.string(),
  name: z.string().nullable(),
  state: z.enum(['new', 'ready', 'resting']),
  createdAt: Time,
  usedAt: Time,
  conversations: Count,
  disk: Disk.nullable(),
}) satisfies z.ZodType<PublicSandbox>;

export const SandboxesDiskUse = namedObject('SandboxesDiskUse', {
  sandboxes: Count,
  bytes: Count,
}) satisfies z.ZodType<DiskUseValue>;

/** Who works where; `sessionId` is null before the first session. */
export const SandboxUse = namedObject('SandboxUse', {
  owner: z.string(),
  sandboxId: z.string(),
  conversationId: z.string(),
  sessionId: z.string().nullable(),
}) satisfies z.ZodType<PublicSandboxUse>;

/** `code`: the exit code of the step; null: it was ended, or could not be started. `output`: the end of its output. */
const SetupStep = namedObject('SetupStep', {
  name: z.string(),
  at: Time,
  ms: z.number(),
  code: z.int().nullable(),
  output: z.string(),
});

export const SandboxView = namedObject('SandboxView', {
  sandbox: Sandbox,
  setup: z.array(SetupStep),
  uses: z.array(SandboxUse),
}) satisfies z.ZodType<ViewValue>;
