import fc from 'fast-check';
import type { ConversationEvent } from 'throughline/client';
import { expect, test } from 'vitest';
import { Cursor } from './cursor.ts';

const events = (...seqs: number[]) => seqs.map((seq) => ({ seq }) as ConversationEvent);
const seqs = (taken: ConversationEvent[]) => taken.map(({ seq }) => seq);

test('events after a gap wait until it is filled', () => {
  const cursor = new Cursor(3);
  expect(seqs(cursor.take(events(4)))).toEqual([4]);
  expect(seqs(cursor.take(events(2, 4)))).toEqual([]);
  expect(cursor.missingBefore).toBeNull();
  expect(seqs(cursor.take(events(7, 8)))).toEqual([]);
  expect([cursor.after, cursor.missingBefore]).toEqual([4, 7]);
  expect(seqs(cursor.take(events(5, 6)))).toEqual([5, 6, 7, 8]);
  expect(cursor.missingBefore).toBeNull();
});

test('events that exist and have not arrived are missing', () => {
  const cursor = new Cursor(3);
  cursor.exists(2);
  expect(cursor.missingBefore).toBeNull();
  cursor.exists(5);
  expect(cursor.missingBefore).toBe(6);
  cursor.take(events(4, 5));
  expect(cursor.missingBefore).toBeNull();
});

test('events in any order, also repeated, are returned once, in order, and only after the position', () => {
  const arrival = fc.array(fc.array(fc.integer({ min: 1, max: 30 }), { maxLength: 10 }), { maxLength: 20 });
  fc.assert(
    fc.property(arrival, fc.integer({ min: 0, max: 10 }), (batches, after) => {
      const cursor = new Cursor(after);
      const taken = batches.flatMap((batch) => seqs(cursor.take(events(...batch))));
      const all = seqs(cursor.take(events(...Array.from({ length: 30 }, (_, i) => i + 1))));
      expect([...taken, ...all]).toEqual(Array.from({ length: 30 - after }, (_, i) => after + i + 1));
    }),
  );
});
