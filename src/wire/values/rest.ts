import * as z from 'zod';
import { HEALTH_STATES, type HealthReport } from '../../core/health.ts';
import { SCOPES } from '../../core/key.ts';
import type { AgentTraits } from '../../core/restore/traits.ts';
import type { AgentInfo as AgentValue, Hint as HintValue, ConversationView as ViewValue } from '../../ports/engine.ts';
import type { UsageRow as UsageRowValue } from '../../ports/store/usage.ts';
import { namedObject } from '../registry.ts';
import { Count, Failure, Usage } from './common.ts';
import { Conversation } from './conversation.ts';
import { Receipt, Session } from './session.ts';
import { TurnView } from './turn.ts';

export const UsageRow = namedObject('UsageRow', {
  day: z.string(),
  agent: z.string(),
  turns: Count,
  usage: Usage,
}) satisfies z.ZodType<UsageRowValue>;

const Traits = z.strictObject({
  version: z.string(),
  id: z.enum(['issued', 'assigned']),
  resume: z.boolean(),
  load: z.boolean(),
  list: z.boolean(),
  rehydrate: z.boolean(),
  noTools: z.boolean(),
  position: z.boolean(),
  rewind: z.boolean(),
  images: z.boolean(),
  window: z.number(),
}) satisfies z.ZodType<AgentTraits>;

export const Agent = namedObject('Agent', {
  name: z.string(),
  adapter: z.string(),
  isDefault: z.boolean(),
  where: z.string().nullable(),
  traits: Traits.nullable(),
  problem: z.string().nullable(),
  login: z.strictObject({ loggedIn: z.boolean().nullable(), hint: z.string().nullable() }).nullable(),
}) satisfies z.ZodType<AgentValue>;

export const ConversationView = namedObject('ConversationView', {
  conversation: Conversation,
  turns: z.array(TurnView),
  sessions: z.array(Session),
  receipts: z.array(Receipt),
}) satisfies z.ZodType<ViewValue>;

/** Which conversation has changed; null: any may have. */
export const Hint = namedObject('Hint', {
  conversationId: z.string().nullable(),
  seq: Count.nullable(),
}) satisfies z.ZodType<HintValue>;

/** `by`: `token`, `page`, or `key ID`. Only the token can act for other owners. */
export const Caller = namedObject('Caller', { owner: z.string(), by: z.string(), scopes: z.array(z.enum(SCOPES)) });

/** `degraded`: something does not work, the rest goes on. `unready`: nothing new is accepted. */
export const Health = namedObject('Health', {
  status: z.enum(HEALTH_STATES),
  live: z.literal(true),
  ready: z.boolean(),
  reasons: z.array(Failure),
}) satisfies z.ZodType<ReadOnlyReport>;

type ReadOnlyReport = Omit<HealthReport, 'reasons'> & { readonly reasons: HealthReport['reasons'][number][] };
