import { expect, test } from 'vitest';
import * as zod from 'zod/v4';
import * as lazy from '../../../scripts/lazy-zod.js';

/** A schema with the features that the ACP library uses. */
function schemaOf(z: typeof zod) {
  const name = z.string().min(1);
  const kinds = z.union([
    z.object({ kind: z.literal('text'), text: name }),
    z.object({ kind: z.literal('size'), bytes: z.int().gte(0).nullish() }),
  ]);
  const list = z.preprocess((value) => value ?? [], z.array(kinds));
  const described = z.object({
    title: z.unknown().transform((value, context) => {
      if (typeof value === 'string') return value.trim();
      context.addIssue({ code: 'custom', message: 'It has no title.' });
      return z.NEVER;
    }),
  });
  return described.and(z.object({ list, notes: z.record(z.string(), z.boolean()).catch(() => ({})) }));
}

test.each([
  {
    title: ' a ',
    list: [
      { kind: 'text', text: 'b' },
      { kind: 'size', bytes: null },
    ],
    notes: { c: true },
  },
  { title: 'a', notes: 'none' },
  { title: 1, list: [] },
  { title: 'a', list: [{ kind: 'text', text: '' }] },
  { title: 'a', list: [{ kind: 'size', bytes: -1 }] },
  { title: 'a', list: [{ kind: 'other' }] },
  null,
])('a schema of scripts/lazy-zod.js gives the same result as one of zod: %j', (value) => {
  const [lazyResult, zodResult] = [lazy as unknown as typeof zod, zod].map((z) => schemaOf(z).safeParse(value));
  expect(lazyResult).toEqual(zodResult);
});
