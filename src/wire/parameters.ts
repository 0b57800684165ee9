import * as z from 'zod';
import { CONVERSATION_STATES, TIME } from '../core/conversation.ts';
import { TASK_STATES } from '../core/tasks/task.ts';
import { Id } from './values/common.ts';

/*
 * Parameters in an address are text; these schemas turn them into numbers, flags and cursors. `error` follows the name of the
 * parameter: `"limit" must be a whole number from 1 to 10000`.
 */

function numeric({ least, most }: { least: number; most?: number }) {
  const error = `must be a whole number${most === undefined ? `, ${least} or more` : ` from ${least} to ${most}`}`;
  const number = z.int({ error }).min(least, { error });
  return z.codec(z.string().regex(/^\d{1,15}$/, { error }), most === undefined ? number : number.max(most, { error }), {
    decode: (text) => Number(text),
    encode: (value) => String(value),
  });
}

/** The same limits as in the engine. */
export const Limit = numeric({ least: 1, most: 10_000 });
/** How long to wait, in seconds. */
export const Wait = numeric({ least: 0, most: 60 });
export const After = numeric({ least: 0 });
export const TurnNumber = numeric({ least: 1 });
/** The end of a page that is read backwards: before this number, or after the last one. */
export const Before = z.codec(
  z.string().regex(/^([1-9]\d{0,14}|end)$/, { error: 'must be a whole number, 1 or more, or "end"' }),
  z.union([z.int().min(1), z.literal('end')]),
  { decode: (text) => (text === 'end' ? text : Number(text)), encode: (value) => String(value) },
);
export const Flag = z.codec(z.enum(['true', 'false']), z.boolean(), {
  decode: (text) => text === 'true',
  encode: (value) => (value ? ('true' as const) : ('false' as const)),
});
export const Day = z.string().regex(/^\d{4}-\d\d-\d\d$/, { error: 'must be a day such as 2026-01-31' });
const lastRow = (of: string) =>
  z.string().regex(/^\d{4}-\d\d-\d\d_.{1,512}$/s, {
    error: `must be the day and the ${of} of the last row of the previous page, as 2026-01-31_${of.toUpperCase()}`,
  });
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
export const TimeText = z
  .string()
  .regex(TIME, { error: 'must be a day such as 2026-01-31 (UTC), or a time such as 2026-01-31T12:00:00Z' });
export const Words = z.string().min(1).max(512);

/** The end of a page, from `next` of its answer: the time of the last change and the id of the last conversation. */
export const Cursor = z.codec(
  z.string().regex(/^\d{1,15}_[0-9a-f-]{36}$/, { error: 'must be "next" of the previous page' }),
  z.strictObject({ updatedAt: z.int().min(0), id: z.string() }),
  {
    decode: (text) => ({ updatedAt: Number(text.slice(0, -37)), id: text.slice(-36) }),
    encode: ({ updatedAt, id }) => `${updatedAt}_${id}`,
  },
);

/** The last row of a page of usage. */
export const LastUsage = z.codec(lastRow('agent'), z.strictObject({ day: z.string(), agent: z.string() }), {
  decode: (text) => ({ day: text.slice(0, 10), agent: text.slice(11) }),
  encode: ({ day, agent }) => `${day}_${agent}`,
});
export const LastTaskUsage = z.codec(lastRow('task'), z.strictObject({ day: z.string(), taskId: z.string() }), {
  decode: (text) => ({ day: text.slice(0, 10), taskId: text.slice(11) }),
  encode: ({ day, taskId }) => `${day}_${taskId}`,
});

/** Parameters in the path. */
export const PathParameters = z.record(z.string(), Id);
