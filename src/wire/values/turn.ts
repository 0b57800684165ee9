import * as z from 'zod';
import { type Sent as SentValue, TURN_ENDS, TURN_STATES, type Turn as TurnValue } from '../../core/turn.ts';
import type { TurnView as TurnViewValue } from '../../ports/engine.ts';
import { named } from '../registry.ts';
import { Count, Failure, Process, RestoreOverride, Time, Usage } from './common.ts';
import { Prompt } from './prompt.ts';
import { ReceiptRung } from './session.ts';

export const TurnEnd = z.enum(TURN_ENDS);
export const PermissionMode = z.enum(['ask', 'deny']);

export const Sent = named(
  'Sent',
  z.strictObject({
    attempt: Count,
    prompt: z.string().nullable(),
    session: z.string().nullable(),
    position: z.string().nullable(),
    rung: ReceiptRung,
    delivered: z.strictObject({ from: Count, to: Count, count: Count, hash: z.string() }).nullable(),
    process: Process.nullable(),
    at: Time,
  }),
) satisfies z.ZodType<SentValue>;

export const Turn = named(
  'Turn',
  z.strictObject({
    id: z.string(),
    conversation: z.string(),
    n: Count,
    requestId: z.string().nullable(),
    state: z.enum(TURN_STATES),
    agent: z.string(),
    prompt: Prompt,
    options: z.strictObject({
      session: z.exactOptional(z.string()),
      restore: z.exactOptional(RestoreOverride),
      permissions: z.exactOptional(PermissionMode),
    }),
    attempt: Count,
    sessionId: z.string().nullable(),
    retryOf: z.string().nullable(),
    sent: Sent.nullable(),
    cancelRequested: z.boolean(),
    failure: Failure.nullable(),
    usage: Usage,
    createdAt: Time,
    startedAt: Time.nullable(),
    endedAt: Time.nullable(),
  }),
) satisfies z.ZodType<TurnValue>;

export const TurnView = named('TurnView', Turn.extend({ reply: z.string() })) satisfies z.ZodType<TurnViewValue>;
