import * as z from 'zod';
import { ERROR_CODES, type Failure as FailureValue } from '../../core/errors.ts';
import type { BudgetInput as BudgetInputValue, Budget as BudgetValue } from '../../core/limits/budget.ts';
import { DELAY_REASONS, type Delayed as DelayedValue } from '../../core/limits/slots.ts';
import type { TimeOverride } from '../../core/limits/time-limits.ts';
import {
  POLICIES,
  type RestoreOverride as RestoreOverrideValue,
  RUNGS,
  type TurnRestore as TurnRestoreValue,
} from '../../core/restore/restore-settings.ts';
import type { Choices as ChoicesValue } from '../../core/turn/choices.ts';
import { STRANDED_REASONS, type Stranded as StrandedValue } from '../../core/turn/standing.ts';
import type { Usage as UsageValue } from '../../core/turn/usage.ts';
import { namedObject } from '../registry.ts';

/*
 * Schemas of the public values (`core/public/`). `satisfies` checks each schema against its type: a field that is added there
 * and not here does not compile.
 */

export const Count = z.int().min(0);
/** Milliseconds since 1970. */
export const Time = z.int().min(0);
export const Id = z.string().min(1).max(512);

export const Failure = namedObject('Failure', {
  code: z.enum(ERROR_CODES),
  message: z.string(),
  hint: z.exactOptional(z.string()),
}) satisfies z.ZodType<FailureValue>;

export const Stranded = namedObject('Stranded', {
  reason: z.enum(STRANDED_REASONS),
  message: z.string(),
  hint: z.string(),
}) satisfies z.ZodType<StrandedValue>;

export const Delayed = namedObject('Delayed', {
  reason: z.enum(DELAY_REASONS),
  message: z.string(),
  hint: z.string(),
}) satisfies z.ZodType<DelayedValue>;

export const Usage = namedObject('Usage', {
  inputTokens: z.number(),
  outputTokens: z.number(),
  cacheReadTokens: z.number(),
  cacheWriteTokens: z.number(),
  costMicros: z.number(),
  modelCalls: z.number(),
  unknownCosts: z.exactOptional(Count),
  unreportedCosts: z.exactOptional(Count),
}) satisfies z.ZodType<UsageValue>;

export const Budget = namedObject('Budget', {
  costMicros: Count.nullable(),
  tokens: Count.nullable(),
}) satisfies z.ZodType<BudgetValue>;

/** `2.50 USD`, `50k tokens`, or amounts. */
export const BudgetInput = z.union([
  z.string().min(1).max(100),
  z.strictObject({ usd: z.exactOptional(z.number()), tokens: z.exactOptional(z.number()) }),
]) satisfies z.ZodType<BudgetInputValue>;

export const TimeLimits = namedObject('TimeLimits', {
  turnSeconds: z.exactOptional(z.number().positive().nullable()),
  stallSeconds: z.exactOptional(z.number().positive().nullable()),
  noticeSeconds: z.exactOptional(z.number().positive().nullable()),
}) satisfies z.ZodType<TimeOverride>;

export const Config = z.record(Id, z.union([z.string().min(1).max(512), z.boolean()]));
export const Choices = namedObject('Choices', {
  model: z.exactOptional(Id),
  mode: z.exactOptional(Id),
  config: z.exactOptional(Config),
}) satisfies z.ZodType<ChoicesValue>;

const RESTORE = {
  policy: z.exactOptional(z.enum(POLICIES)),
  rung: z.exactOptional(z.enum(RUNGS).nullable()),
  budgetTokens: z.exactOptional(Count.nullable()),
  lastTurns: z.exactOptional(Count.nullable()),
  allowTools: z.exactOptional(z.boolean()),
};
export const RestoreOverride = namedObject('RestoreOverride', RESTORE) satisfies z.ZodType<RestoreOverrideValue>;
export const TurnRestore = namedObject('TurnRestore', {
  ...RESTORE,
  rebuild: z.exactOptional(z.boolean()),
}) satisfies z.ZodType<TurnRestoreValue>;
