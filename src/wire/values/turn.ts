import * as z from 'zod';
import type {
  PublicPermission,
  PublicSent,
  PublicTold,
  PublicTool,
  PublicTurn,
  TurnOutline as TurnOutlineValue,
} from '../../core/public/turn.ts';
import type { ToldPart as ToldPartValue } from '../../core/restore/told.ts';
import type {
  ContentBlock as ContentBlockValue,
  EmbeddedResource,
  Prompt as PromptValue,
} from '../../core/turn/content.ts';
import {
  ANSWERED_FROM,
  type Denial as DenialValue,
  type PermissionOption as OptionValue,
  PERMISSION_STATES,
} from '../../core/turn/permission.ts';
import { PERMISSION_MODES, TURN_ENDS, TURN_STATES } from '../../core/turn/turn.ts';
import type { TurnView as TurnViewValue } from '../../ports/engine.ts';
import { named, namedObject } from '../registry.ts';
import { Choices, Count, Delayed, Failure, Stranded, Time, TimeLimits, TurnRestore, Usage } from './common.ts';
import { ReceiptRung } from './session.ts';

const optionalText = z.exactOptional(z.string());

const Resource = z.union([
  z.looseObject({ uri: z.string(), text: z.string(), mimeType: optionalText }),
  z.looseObject({ uri: z.string(), blob: z.string(), mimeType: optionalText }),
]) satisfies z.ZodType<EmbeddedResource>;

/** As the Agent Client Protocol has it; further fields are kept as given. */
export const ContentBlock = named(
  'ContentBlock',
  z.discriminatedUnion('type', [
    z.looseObject({ type: z.literal('text'), text: z.string() }),
    z.looseObject({ type: z.literal('image'), data: z.string(), mimeType: z.string(), uri: optionalText }),
    z.looseObject({ type: z.literal('audio'), data: z.string(), mimeType: z.string() }),
    z.looseObject({ type: z.literal('resource_link'), uri: z.string(), name: z.string(), mimeType: optionalText }),
    z.looseObject({ type: z.literal('resource'), resource: Resource }),
  ]),
) satisfies z.ZodType<ContentBlockValue>;

export const Prompt = named('Prompt', z.array(ContentBlock).min(1).max(1_000)) satisfies z.ZodType<PromptValue>;
/** A prompt as a caller may write it. */
export const PromptInput = z.union([z.string().min(1), Prompt]);

export const TurnEnd = z.enum(TURN_ENDS);
export const PermissionMode = z.enum(PERMISSION_MODES);

export const Sent = namedObject('Sent', {
  attempt: Count,
  rung: ReceiptRung,
  delivered: z.strictObject({ from: Count, to: Count, count: Count }).nullable(),
  at: Time,
}) satisfies z.ZodType<PublicSent>;

export const Turn = namedObject('Turn', {
  id: z.string(),
  conversationId: z.string(),
  n: Count,
  requestId: z.string().nullable(),
  state: z.enum(TURN_STATES),
  agent: z.string(),
  prompt: z.array(ContentBlock),
  options: z.strictObject({
    session: z.exactOptional(z.string()),
    newSession: z.exactOptional(z.string()),
    restore: z.exactOptional(TurnRestore),
    permissions: z.exactOptional(PermissionMode),
    limits: z.exactOptional(TimeLimits),
    deliverTo: z.exactOptional(z.string()),
    ...Choices.shape,
    kept: z.exactOptional(Choices),
  }),
  attempt: Count,
  sessionId: z.string().nullable(),
  retryOf: z.string().nullable(),
  replaces: z.string().nullable(),
  replacedBy: z.string().nullable(),
  imported: z.boolean(),
  sent: Sent.nullable(),
  cancelRequested: z.boolean(),
  stranded: Stranded.nullable(),
  delayed: Delayed.nullable(),
  failure: Failure.nullable(),
  usage: Usage,
  recovered: z.exactOptional(z.literal(true)),
  delivered: z.exactOptional(z.literal(true)),
  createdAt: Time,
  startedAt: Time.nullable(),
  endedAt: Time.nullable(),
}) satisfies z.ZodType<PublicTurn>;

export const TurnView = named('TurnView', Turn.extend({ reply: z.string() })) satisfies z.ZodType<TurnViewValue>;

export const TurnOutline = named(
  'TurnOutline',
  Turn.pick({
    id: true,
    n: true,
    state: true,
    agent: true,
    sessionId: true,
    imported: true,
    usage: true,
    startedAt: true,
    endedAt: true,
  }).extend({ rung: ReceiptRung.nullable(), given: ReceiptRung.nullable() }),
) satisfies z.ZodType<TurnOutlineValue>;

const Sha256 = z.string().regex(/^[0-9a-f]{64}$/);

const ToldPart = named(
  'ToldPart',
  z.discriminatedUnion('as', [
    z.strictObject({ as: z.literal('transcript'), text: z.string(), sha256: Sha256 }),
    z.strictObject({ as: z.literal('prompt'), turn: Count, content: z.array(ContentBlock), sha256: Sha256 }),
  ]),
) satisfies z.ZodType<ToldPartValue>;

export const Told = namedObject('Told', {
  turnId: z.string(),
  attempt: Count,
  rung: ReceiptRung,
  sessionId: z.string().nullable(),
  at: Time,
  parts: z.array(ToldPart),
}) satisfies z.ZodType<PublicTold>;

export const PermissionOption = namedObject('PermissionOption', {
  optionId: z.string(),
  name: z.string(),
  kind: z.enum(['allow_once', 'allow_always', 'reject_once', 'reject_always']),
}) satisfies z.ZodType<OptionValue>;

export const Permission = namedObject('Permission', {
  id: z.string(),
  conversationId: z.string(),
  turnId: z.string(),
  attempt: Count,
  title: z.string(),
  toolCall: z.unknown(),
  options: z.array(PermissionOption),
  state: z.enum(PERMISSION_STATES),
  optionId: z.string().nullable(),
  answeredBy: z.string().nullable(),
  answeredFrom: z.enum(ANSWERED_FROM).nullable(),
  reason: z.string().nullable(),
  askedAt: Time,
  endedAt: Time.nullable(),
}) satisfies z.ZodType<PublicPermission>;

export const Denial = namedObject('Denial', {
  permissionId: z.string(),
  title: z.string(),
  reason: z.string(),
}) satisfies z.ZodType<DenialValue>;

export const Tool = namedObject('Tool', {
  id: z.string(),
  title: z.string(),
  kind: z.string(),
  target: z.string().nullable(),
  input: z.unknown(),
  output: z.string().nullable(),
  status: z.enum(['completed', 'failed', 'unknown']),
  ms: z.exactOptional(z.int().min(0)),
}) satisfies z.ZodType<PublicTool>;
