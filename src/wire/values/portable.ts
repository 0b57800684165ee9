import * as z from 'zod';
import { EXPORT_FORMAT, EXPORT_VERSION, type ExportedConversation as ExportedValue } from '../../core/portable.ts';
import type { TurnRecord as RecordValue } from '../../core/turn/record.ts';
import type { RecordedDiff as RecordedDiffValue } from '../../core/turn/reported-diff.ts';
import { namedObject } from '../registry.ts';
import { Count, Failure, RestoreOverride, Usage } from './common.ts';
import { Session } from './session.ts';
import { Prompt, Tool, TurnEnd } from './turn.ts';

const RecordedDiff = z.strictObject({
  path: z.string(),
  oldText: z.string().nullable(),
  newText: z.string(),
  lines: z.tuple([Count, Count]).readonly().nullable(),
  cut: z.exactOptional(z.literal(true)),
}) satisfies z.ZodType<RecordedDiffValue>;

const RecordPart = z.union([
  z.strictObject({ type: z.literal('text'), text: z.string() }),
  z.strictObject({ type: z.literal('thought'), text: z.string() }),
  z.strictObject({
    type: z.literal('tool'),
    name: z.string(),
    ...Tool.omit({ title: true }).shape,
    diffs: z.exactOptional(z.array(RecordedDiff)),
  }),
]);

export const TurnRecord = namedObject('TurnRecord', {
  version: z.literal(1),
  n: Count,
  agent: z.string(),
  sessionId: z.string().nullable(),
  outcome: TurnEnd,
  prompt: Prompt,
  parts: z.array(RecordPart),
  failure: Failure.nullable(),
  usage: Usage,
  startedAt: z.number(),
  endedAt: z.number(),
  recovered: z.exactOptional(z.literal(true)),
  unknownBefore: z.exactOptional(z.literal(true)),
}) satisfies z.ZodType<RecordValue>;

export const ExportedConversation = namedObject('ExportedConversation', {
  format: z.literal(EXPORT_FORMAT),
  version: z.literal(EXPORT_VERSION),
  conversation: z.strictObject({
    key: z.string().nullable(),
    title: z.string(),
    agent: z.string().nullable(),
    restore: RestoreOverride,
  }),
  records: z.array(TurnRecord),
  sessions: z.array(Session.pick({ id: true, agent: true, origin: true, parent: true, watermark: true })),
}) satisfies z.ZodType<ExportedValue>;
