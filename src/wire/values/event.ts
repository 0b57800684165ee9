import * as z from 'zod';
import { TITLE_SOURCES } from '../../core/conversation.ts';
import type { PublicEvent, PublicEventKind, PublicEventPayloads } from '../../core/public/event.ts';
import { RUNGS } from '../../core/restore/restore-settings.ts';
import { ANSWERED_FROM } from '../../core/turn/permission.ts';
import type { Update as UpdateValue } from '../../core/turn/update.ts';
import { named } from '../registry.ts';
import { Count, Failure, Time, Usage } from './common.ts';
import { Parent } from './conversation.ts';
import { Receipt, SessionOrigin, SessionState, Tried } from './session.ts';
import { PermissionOption, Sent, TurnEnd } from './turn.ts';

/** An ACP `session/update` value, as the agent sent it. */
export const Update = named(
  'Update',
  z.looseObject({ sessionUpdate: z.string() }),
) as unknown as z.ZodType<UpdateValue>;

const OfSandbox = { sandboxId: z.string(), name: z.string().nullable() };

const PAYLOADS = {
  'conversation.created': z.strictObject({
    key: z.string().nullable(),
    agent: z.string().nullable(),
    cwd: z.string().nullable(),
  }),
  'conversation.forked': Parent,
  'conversation.imported': z.strictObject({ turns: Count }),
  'conversation.titled': z.strictObject({ title: z.string(), source: z.enum(TITLE_SOURCES) }),
  'conversation.arranged': z.strictObject({ pinned: z.boolean(), putAway: z.boolean() }),
  'conversation.moved': z.strictObject({ from: z.string(), to: z.string(), by: z.string() }),
  'turn.queued': z.strictObject({
    n: Count,
    agent: z.string(),
    requestId: z.string().nullable(),
    retryOf: z.string().nullable(),
    replaces: z.exactOptional(z.string()),
    by: z.exactOptional(z.string()),
    preview: z.string(),
  }),
  'turn.started': z.strictObject({ n: Count, attempt: Count }),
  'turn.requeued': z.strictObject({ n: Count, attempt: Count }),
  'turn.sent': z.strictObject({ n: Count, sent: Sent }),
  'turn.update': z.strictObject({ acp: z.int(), update: Update }),
  'turn.retrying': z.strictObject({ n: Count, attempt: Count, failure: Failure }),
  'turn.stalled': z.strictObject({
    n: Count,
    silentMs: z.number(),
    tool: z.string().nullable(),
    endsInMs: z.number().nullable(),
  }),
  'turn.cancel_requested': z.strictObject({ n: Count, by: z.string() }),
  'turn.ended': z.strictObject({
    n: Count,
    outcome: TurnEnd,
    failure: Failure.nullable(),
    reply: z.string(),
    usage: Usage,
    recovered: z.exactOptional(z.literal(true)),
    replacedBy: z.exactOptional(z.string().nullable()),
  }),
  'session.opened': z.strictObject({
    sessionId: z.string(),
    agent: z.string(),
    origin: SessionOrigin,
    parent: z.string().nullable(),
  }),
  'session.changed': z.strictObject({
    sessionId: z.string(),
    state: SessionState,
    watermark: Count,
    reason: z.string().nullable(),
  }),
  'session.locked': z.strictObject({ sessionId: z.string().nullable(), waits: Count, ms: z.number() }),
  'restore.started': z.strictObject({ rung: z.enum(RUNGS), total: Count }),
  'restore.progress': z.strictObject({ rung: z.enum(RUNGS), done: Count, total: Count }),
  'restore.tried': Tried,
  'restore.receipt': Receipt,
  'sandbox.created': z.strictObject(OfSandbox),
  'sandbox.reopened': z.strictObject(OfSandbox),
  'sandbox.set-up': z.strictObject({
    ...OfSandbox,
    steps: z.array(z.strictObject({ name: z.string(), ms: z.number(), code: z.int().nullable() })),
  }),
  'sandbox.rested': z.strictObject({ ...OfSandbox, reason: z.string() }),
  'sandbox.destroyed': z.strictObject({ ...OfSandbox, reason: z.string() }),
  'permission.asked': z.strictObject({
    permissionId: z.string(),
    title: z.string(),
    toolCall: z.unknown(),
    options: z.array(PermissionOption),
  }),
  'permission.answered': z.strictObject({
    permissionId: z.string(),
    optionId: z.string(),
    by: z.string(),
    from: z.exactOptional(z.enum(ANSWERED_FROM)),
  }),
  'permission.denied': z.strictObject({ permissionId: z.string(), reason: z.string() }),
  'permission.withdrawn': z.strictObject({ permissionId: z.string(), reason: z.string() }),
  'event.unknown': z.strictObject({ kind: z.string() }),
} satisfies { [K in PublicEventKind]: z.ZodType<PublicEventPayloads[K]> };

const kinds = Object.entries(PAYLOADS).map(([kind, payload]) =>
  z.strictObject({
    conversationId: z.string(),
    seq: Count,
    kind: z.literal(kind),
    turnId: z.string().nullable(),
    at: Time,
    payload,
  }),
);

const union = z.discriminatedUnion('kind', kinds as [(typeof kinds)[number]]);

/** Every event of the interface. `kind` says which. */
export const ConversationEvent = named('ConversationEvent', union) as unknown as z.ZodType<PublicEvent>;
