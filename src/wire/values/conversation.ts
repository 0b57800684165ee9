import * as z from 'zod';
import { TITLE_SOURCES } from '../../core/conversation.ts';
import type { PublicConversation, PublicParent, PublicSummary } from '../../core/public/conversation.ts';
import type { Erased as ErasedValue, SearchHit as HitValue, Remains as RemainsValue } from '../../ports/engine.ts';
import { namedObject } from '../registry.ts';
import { Budget, Count, Delayed, RestoreOverride, Stranded, Time, Usage } from './common.ts';

export const Parent = z.strictObject({ conversationId: z.string(), n: Count }) satisfies z.ZodType<PublicParent>;

export const Conversation = namedObject('Conversation', {
  id: z.string(),
  owner: z.string(),
  key: z.string().nullable(),
  title: z.string(),
  titleSource: z.enum(TITLE_SOURCES),
  agent: z.string().nullable(),
  driver: z.enum(['worker', 'tracker']),
  cwd: z.string().nullable(),
  restore: RestoreOverride,
  limitPerDay: Budget.nullable(),
  parent: Parent.nullable(),
  head: Count,
  historyCount: Count,
  lastSeq: Count,
  logId: z.string(),
  open: Count,
  stranded: Stranded.nullable(),
  delayed: Delayed.nullable(),
  createdAt: Time,
  updatedAt: Time,
}) satisfies z.ZodType<PublicConversation>;

const Remains = z.discriminatedUnion('what', [
  z.strictObject({ what: z.enum(['sandbox', 'directory']), where: z.string() }),
  z.strictObject({ what: z.literal('session'), where: z.string(), agent: z.string(), sessionId: z.string() }),
]) satisfies z.ZodType<RemainsValue>;

export const Erased = namedObject('Erased', {
  erased: z.string(),
  remains: z.array(Remains),
}) satisfies z.ZodType<ErasedValue>;

const Moment = z.strictObject({ n: Count, at: Time });

export const Summary = namedObject('Summary', {
  conversationId: z.string(),
  key: z.string().nullable(),
  title: z.string(),
  contexts: Count,
  first: Moment.nullable(),
  last: Moment.nullable(),
  sessions: Count,
  changes: Count,
  open: Count,
  stranded: Stranded.nullable(),
  delayed: Delayed.nullable(),
  lock: z.strictObject({ holder: z.string(), expiresIn: z.number() }).nullable(),
  usage: Usage,
}) satisfies z.ZodType<PublicSummary>;

export const SearchHit = namedObject('SearchHit', {
  conversationId: z.string(),
  key: z.string().nullable(),
  title: z.string(),
  n: Count,
  snippet: z.string(),
}) satisfies z.ZodType<HitValue>;
