import * as z from 'zod';
import { HEALTH_STATES, type HealthReport } from '../../core/health.ts';
import { SCOPES } from '../../core/key.ts';
import { type AgentTraits, WINDOW_FROM } from '../../core/restore/traits.ts';
import type { PublicFinding } from '../../ports/doctor.ts';
import type { AgentInfo as AgentValue, Hint as HintValue, ConversationView as ViewValue } from '../../ports/engine.ts';
import type { StoreMeasure } from '../../ports/store/census.ts';
import type { UsageRow as UsageRowValue } from '../../ports/store/usage.ts';
import { namedObject } from '../registry.ts';
import { Count, Failure, Time, Usage } from './common.ts';
import { Conversation } from './conversation.ts';
import { Update } from './event.ts';
import { SandboxesDiskUse } from './sandbox.ts';
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
  windowFrom: z.enum(WINDOW_FROM),
}) satisfies z.ZodType<AgentTraits>;

export const Agent = namedObject('Agent', {
  name: z.string(),
  adapter: z.string(),
  isDefault: z.boolean(),
  where: z.string().nullable(),
  traits: Traits.nullable(),
  problem: z.string().nullable(),
  login: z.strictObject({ loggedIn: z.boolean().nullable(), hint: z.string().nullable() }).nullable(),
  announced: z.array(Update),
}) satisfies z.ZodType<AgentValue>;

export const ConversationView = namedObject('ConversationView', {
  conversation: Conversation,
  turns: z.array(TurnView),
  sessions: z.array(Session),
  receipts: z.array(Receipt),
}) satisfies z.ZodType<ViewValue>;

/** Which conversation may have changed; null: any. */
export const Hint = namedObject('Hint', {
  conversationId: z.string().nullable(),
  seq: Count.nullable(),
}) satisfies z.ZodType<HintValue>;

/** `by`: `token`, `page`, or `key ID`. `owners`: the others that it can act for, with the header `Throughline-Owner`. */
export const Caller = namedObject('Caller', {
  owner: z.string(),
  by: z.string(),
  scopes: z.array(z.enum(SCOPES)),
  owners: z.string().nullable(),
  isOperator: z.boolean(),
  command: z.string().nullable(),
  expiresAt: Time.nullable(),
});

/** Who holds a conversation, until when (unless it is renewed), and its sessions whose agents run. */
const Lease = namedObject('Lease', {
  conversationId: z.string(),
  key: z.string().nullable(),
  title: z.string(),
  holder: z.string(),
  until: Time,
  open: Count,
  sessions: z.array(z.strictObject({ id: z.string(), agent: z.string(), openedAt: Time, usedAt: Time })),
});

/** `commitMs`: of the last transactions of the server, each with its fsync; null: there was none. `connections`: to PostgreSQL. */
const Store = namedObject('Store', {
  bytes: Count,
  logBytes: Count,
  freeBytes: Count,
  commits: Count,
  commitMs: z.strictObject({ p50: z.number(), p95: z.number(), max: z.number() }).nullable(),
  connections: z.exactOptional(z.strictObject({ most: Count, used: Count, idle: Count, waiting: Count })),
}) satisfies z.ZodType<StoreMeasure>;

const HealthDetails = namedObject('HealthDetails', {
  version: z.string(),
  store: Store.nullable(),
  sandboxes: z.strictObject({ root: z.string(), count: Count }).nullable(),
  diskUse: SandboxesDiskUse.nullable(),
  leases: z.array(Lease).nullable(),
  moreLeases: Count.nullable(),
});

/** `degraded`: something does not work, the rest does. `unready`: nothing new is accepted. */
export const Health = namedObject('Health', {
  status: z.enum(HEALTH_STATES),
  live: z.literal(true),
  ready: z.boolean(),
  reasons: z.array(Failure),
  details: z.exactOptional(HealthDetails),
}) satisfies z.ZodType<HealthReport>;

/** `remedy`: what `throughline doctor` with `repairedBy` does; null: only a person can decide. `isNote`: nothing is wrong. */
export const Finding = namedObject('Finding', {
  check: z.string(),
  subject: z.string(),
  problem: z.string(),
  remedy: z.string().nullable(),
  repairedBy: z.enum(['--fix', '--accept-loss', '--delete-left-over']).nullable(),
  isNote: z.boolean(),
}) satisfies z.ZodType<PublicFinding>;
