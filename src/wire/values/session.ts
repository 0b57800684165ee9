import * as z from 'zod';
import type { PublicReceipt, PublicRestore, PublicSession } from '../../core/public/session.ts';
import type { Tried as TriedValue } from '../../core/restore/receipt.ts';
import { RUNGS } from '../../core/restore/restore-settings.ts';
import { SESSION_ORIGINS, SESSION_STATES } from '../../core/restore/session.ts';
import { WINDOW_FROM } from '../../core/restore/traits.ts';
import { namedObject } from '../registry.ts';
import { Count, Time, Usage } from './common.ts';

export const SessionState = z.enum(SESSION_STATES);
export const SessionOrigin = z.enum(SESSION_ORIGINS);
export const ReceiptRung = z.enum([...RUNGS, 'new', 'fresh', 'none']);
const Proof = z.enum(['proved', 'consistent', 'counted', 'none', 'refuted']);

export const Session = namedObject('Session', {
  id: z.string(),
  conversationId: z.string(),
  agent: z.string(),
  origin: SessionOrigin,
  parent: z.string().nullable(),
  watermark: Count,
  dropped: Count,
  condensedTo: Count,
  state: SessionState,
  turns: Count,
  usage: Usage,
  context: z.strictObject({ used: Count, size: Count }).nullable(),
  openedAt: Time,
  usedAt: Time,
}) satisfies z.ZodType<PublicSession>;

export const Tried = z.strictObject({
  rung: ReceiptRung,
  sessionId: z.string().nullable(),
  failure: z.string(),
}) satisfies z.ZodType<TriedValue>;

export const Receipt = namedObject('Receipt', {
  turn: Count.nullable(),
  attempt: Count,
  agent: z.string(),
  rung: ReceiptRung,
  sessionId: z.string().nullable(),
  carried: Count,
  condensed: Count,
  dropped: Count,
  shortened: Count,
  leftOut: z.strictObject({ outputs: Count, images: Count, files: Count }),
  unknownBefore: Count.nullable(),
  delivered: Count,
  deliveredTokens: z.number(),
  window: z.strictObject({ tokens: z.number(), from: z.enum(WINDOW_FROM) }).nullable(),
  unsettled: z.boolean(),
  filesLeft: z.exactOptional(z.string()),
  modelCalls: Count,
  usage: Usage,
  toolsRan: z.array(z.string()),
  proof: Proof,
  before: Proof,
  after: Proof.nullable(),
  tried: z.array(Tried),
  lockWaits: z.strictObject({ count: Count, ms: z.number() }),
  ms: z.number(),
}) satisfies z.ZodType<PublicReceipt>;

export const Restore = namedObject('Restore', { n: Count, receipt: Receipt }) satisfies z.ZodType<PublicRestore>;
