import * as z from 'zod';
import { type Conversation as ConversationValue, TITLE_SOURCES } from '../../core/conversation.ts';
import type { Summary as SummaryValue } from '../../core/summary.ts';
import { named } from '../registry.ts';
import { Count, RestoreOverride, Time, Usage } from './common.ts';

export const Parent = z.strictObject({ conversation: z.string(), n: Count, hash: z.string() });

export const Conversation = named(
  'Conversation',
  z.strictObject({
    id: z.string(),
    owner: z.string(),
    key: z.string().nullable(),
    title: z.string(),
    titleSource: z.enum(TITLE_SOURCES),
    agent: z.string().nullable(),
    driver: z.enum(['worker', 'tracker']),
    sandbox: z.string(),
    cwd: z.string().nullable(),
    place: z.string(),
    restore: RestoreOverride,
    parent: Parent.nullable(),
    head: Count,
    historyCount: Count,
    lastSeq: Count,
    createdAt: Time,
    updatedAt: Time,
  }),
) satisfies z.ZodType<ConversationValue>;

const Moment = z.strictObject({ n: Count, at: Time });

export const Summary = named(
  'Summary',
  z.strictObject({
    conversation: z.string(),
    key: z.string().nullable(),
    title: z.string(),
    contexts: Count,
    first: Moment.nullable(),
    last: Moment.nullable(),
    sessions: Count,
    changes: Count,
    open: Count,
    lock: z.strictObject({ holder: z.string(), pid: z.int(), epoch: Count, expiresIn: z.number() }).nullable(),
    usage: Usage,
  }),
) satisfies z.ZodType<SummaryValue>;
