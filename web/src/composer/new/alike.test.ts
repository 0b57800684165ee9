import type { SearchHit } from 'throughline/client';
import { expect, test } from 'vitest';
import { alikeWords, firstOfEach } from './alike.ts';

test.each([
  ['', ''],
  ['Fix the refund', ''],
  ['Add a dry run to the refund script', 'refund script'],
  ['Rename the payment of refunds in payments.ts', 'payment payments'],
])('%j is searched as %j', (text, words) => expect(alikeWords(text)).toBe(words));

test('each conversation is offered once, in the order of the hits', () => {
  const hit = (conversationId: string, n: number) => ({ conversationId, n }) as SearchHit;
  const hits = [hit('b', 3), hit('a', 1), hit('b', 2)];
  expect(firstOfEach(hits).map(({ conversationId, n }) => `${conversationId}${n}`)).toEqual(['b3', 'a1']);
});
