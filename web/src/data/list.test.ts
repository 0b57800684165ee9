import type { Conversation, ThroughlineClient } from 'throughline/client';
import { describe, expect, test } from 'vitest';
import { readMore, useList, withNewest } from './list.ts';

const row = (id: string, updatedAt: number) => ({ id, updatedAt }) as Conversation;
const NONE = new Set<string>();
const before = { rows: [row('e', 5), row('d', 4), row('c', 3), row('b', 2), row('a', 1)], hasMore: true };
const joined = (newest: Conversation[], touched: ReadonlySet<string> = NONE, others: Conversation[] = []) => {
  const { rows, hasMore } = withNewest(before, newest, touched, others, 2);
  return [rows.map(({ id }) => id).join(''), hasMore];
};

describe('the list after its first page was read again', () => {
  test('a changed conversation moves up, and the rest stays', () => {
    expect(joined([row('b', 6), row('e', 5)])).toEqual(['bedca', true]);
  });
  test('a new conversation is first', () => {
    expect(joined([row('f', 6), row('e', 5)])).toEqual(['fedcba', true]);
  });
  test('without an unchanged row in the new page, the rest is read again', () => {
    expect(joined([row('g', 8), row('f', 7)])).toEqual(['gf', true]);
    expect(joined([row('a', 8), row('b', 7)])).toEqual(['ab', true]);
  });
  test('one that has changed and is not found is removed', () => {
    expect(joined([row('f', 6), row('e', 5)], new Set(['c']))).toEqual(['fedba', true]);
  });
  test('one that has changed and is found further down stays there', () => {
    const pinned = { ...row('b', 2), pinned: true };
    expect(joined([row('f', 6), row('e', 5)], new Set(['b']), [pinned])).toEqual(['fedcba', true]);
    const { rows } = withNewest(before, [row('f', 6), row('e', 5)], new Set(['b']), [pinned], 2);
    expect(rows.find(({ id }) => id === 'b')?.pinned).toBe(true);
  });
  test('a page that is not full is the whole list', () => {
    expect(joined([row('e', 5)])).toEqual(['e', false]);
  });
  test('those of the same time are ordered by id', () => {
    const rows = [row('c', 1), row('b', 1), row('a', 1)];
    const merged = withNewest({ rows, hasMore: false }, [row('d', 2), row('c', 1)], NONE, [], 2);
    expect(merged).toEqual({ rows: [row('d', 2), row('c', 1), row('b', 1), row('a', 1)], hasMore: false });
  });
});

describe('the next page', () => {
  const asked: string[] = [];
  /** A server with five conversations, and a list that is reloaded while the page is being read. */
  const read = async (...again: Conversation[][]) => {
    asked.length = 0;
    const conversations = async ({ before: end }: { before: { id: string } }) => {
      asked.push(end.id);
      const rows = again.shift();
      if (rows !== undefined) useList.setState({ rows });
      return before.rows.filter(({ id }) => id < end.id);
    };
    await readMore({ conversations } as unknown as ThroughlineClient);
    return useList
      .getState()
      .rows.map(({ id }) => id)
      .join('');
  };

  test('joins a list that was reloaded meanwhile and still has the same end', async () => {
    useList.setState({ rows: [row('e', 5), row('d', 4)], hasMore: true });
    expect(await read([row('e', 5), row('d', 4)])).toBe('edcba');
    expect(asked).toEqual(['d']);
  });

  test('is read again if the list has another end by then', async () => {
    useList.setState({ rows: [row('e', 5), row('d', 4)], hasMore: true });
    expect(await read([row('d', 6), row('e', 5), row('c', 3)])).toBe('decba');
    expect(asked).toEqual(['d', 'c']);
  });
});
