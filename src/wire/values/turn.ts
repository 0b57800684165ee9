import * as z from 'zod';
import type { PermissionOption as OptionValue } from '../../core/permission.ts';
import type { PublicPermission, PublicSent, PublicTurn } from '../../core/public/turn.ts';
import { TURN_ENDS, TURN_STATES } from '../../core/turn.ts';
import type { TurnView as TurnViewValue } from '../../ports/engine.ts';
import { named } from '../registry.ts';
import { Count, Failure, RestoreOverride, Time, Usage } from './common.ts';
import { Prompt } from './prompt.ts';
import { ReceiptRung } from './session.ts';

export const TurnEnd = z.enum(TURN_ENDS);
export const PermissionMode = z.enum(['ask', 'deny']);

export const Sent = named(
  'Sent',
  z.strictObject({
    attempt: Count,
    rung: ReceiptRung,
    delivered: z.strictObject({ from: Count, to: Count, count: Count }).nullable(),
    at: Time,
  }),
) satisfies z.ZodType<PublicSent>;

export const Turn = named(
  'Turn',
  z.strictObject({
    id: z.string(),
    conversationId: z.string(),
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
) satisfies z.ZodType<PublicTurn>;

export const TurnView = named('TurnView', Turn.extend({ reply: z.string() })) satisfies z.ZodType<TurnViewValue>;

export const PermissionOption = named(
  'PermissionOption',
  z.strictObject({
    optionId: z.string(),
    name: z.string(),
    kind: z.enum(['allow_once', 'allow_always', 'reject_once', 'reject_always']),
  }),
) satisfies z.ZodType<OptionValue>;

export const Permission = named(
  'Permission',
  z.strictObject({
    id: z.string(),
    conversationId: z.string(),
    turnId: z.string(),
    attempt: Count,
    title: z.string(),
    toolCall: z.unknown(),
    options: z.array(PermissionOption),
    state: z.enum(['open', 'answered', 'withdrawn']),
    optionId: z.string().nullable(),
    answeredBy: z.string().nullable(),
    askedAt: Time,
    endedAt: Time.nullable(),
  }),
) satisfies z.ZodType<PublicPermission>;
