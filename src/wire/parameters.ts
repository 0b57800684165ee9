import * as z from 'zod';
import { CONVERSATION_STATES, TIME } from '../core/conversation.ts';
import { TASK_STATES } from '../core/tasks/task.ts';
import { Id } from './values/common.ts';

/* Parameters in an address are text; these schemas turn them into numbers, flags and cursors. */

const digits = z.string().regex(/^\d{1,15}$/);
const numeric = (number: z.ZodInt) =>
  z.codec(digits, number, { decode: (text) => Number(text), encode: (value) => String(value) });

/** The same limits as in the engine. */
export const Limit = numeric(z.int().min(1).max(10_000));
/** How long to wait, in seconds. */
export const Wait = numeric(z.int().min(0).max(60));
export const After = numeric(z.int().min(0));
export const TurnNumber = numeric(z.int().min(1));
/** The end of a page that is read backwards: before this number, or after the last one. */
export const Before = z.codec(z.string().regex(/^([1-9]\d{0,14}|end)$/), z.union([z.int().min(1), z.literal('end')]), {
  decode: (text) => (text === 'end' ? text : Number(text)),
  encode: (value) => String(value),
});
export const Flag = z.codec(z.enum(['true', 'false']), z.boolean(), {
  decode: (text) => text === 'true',
  encode: (value) => (value ? ('true' as const) : ('false' as const)),
});
export const Day = z.string().regex(/^\d{4}-\d\d-\d\d$/);
const LAST_ROW = /^\d{4}-\d\d-\d\d_.{1,512}$/s;
/** Any of these: `waiting,queued`. */
const oneOrMore = <S extends string>(states: readonly S[]) =>
  z.codec(
    z.string().regex(new RegExp(`^(${states.join('|')})(,(${states.join('|')}))*$`), {
      error: `must be one or more of ${states.join(', ')}, with commas between them`,
    }),
    z.array(z.enum(states)),
    { decode: (text) => text.split(',') as S[], encode: (some) => some.join(',') },
  );
export const States = oneOrMore(TASK_STATES);
export const ConversationStates = oneOrMore(CONVERSATION_STATES);
export const TimeText = z.string().regex(TIME);
export const Words = z.string().min(1).max(512);

/** The end of a page, from `next` of its answer: the time of the last change and the id of the last conversation. */
export const Cursor = z.codec(
  z.string().regex(/^\d{1,15}_[0-9a-f-]{36}$/),
  z.strictObject({ updatedAt: z.int().min(0), id: z.string() }),
  {
    decode: (text) => ({ updatedAt: Number(text.slice(0, -37)), id: text.slice(-36) }),
    encode: ({ updatedAt, id }) => `${updatedAt}_${id}`,
  },
);

/** The last row of a page of usage. */
export const LastUsage = z.codec(z.string().regex(LAST_ROW), z.strictObject({ day: z.string(), agent: z.string() }), {
  decode: (text) => ({ day: text.slice(0, 10), agent: text.slice(11) }),
  encode: ({ day, agent }) => `${day}_${agent}`,
});
export const LastTaskUsage = z.codec(
  z.string().regex(LAST_ROW),
  z.strictObject({ day: z.string(), taskId: z.string() }),
  {
    decode: (text) => ({ day: text.slice(0, 10), taskId: text.slice(11) }),
    encode: ({ day, taskId }) => `${day}_${taskId}`,
  },
);

/** Parameters in the path. */
export const PathParameters = z.record(z.string(), Id);
