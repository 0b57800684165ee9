import * as z from 'zod';
import type { PermissionOption as OptionValue, Permission as PermissionValue } from '../../core/permission.ts';
import { named } from '../registry.ts';
import { Count, Time } from './common.ts';

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
    conversation: z.string(),
    turn: z.string(),
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
) satisfies z.ZodType<PermissionValue>;
