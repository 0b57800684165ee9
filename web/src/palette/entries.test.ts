import type { Conversation } from 'throughline/client';
import { describe, expect, test } from 'vitest';
import { entriesOf, ranked } from './entries.ts';

const row = (id: string, title: string) =>
  ({ id, title, key: null, state: 'idle', project: null, stranded: null, parent: null }) as Conversation;
const action = (id: string, title: string) => ({ id, title, group: 'Go to', run: () => {} });

describe('the palette', () => {
  test.each([
    ['', ['Inbox', 'Tidy the inbox', 'Bin']],
    ['in', ['Inbox', 'Tidy the inbox', 'Bin']],
    ['tidy in', ['Tidy the inbox']],
    ['INBOX', ['Inbox', 'Tidy the inbox']],
    ['nothing', []],
  ])('%j finds %j', (words, titles) => {
    expect(ranked(words, ['Inbox', 'Tidy the inbox', 'Bin'], (each) => each)).toEqual(titles);
  });

  test('offers actions before conversations, and a search of turns only when words were typed', () => {
    const hit = { conversationId: 'c', key: null, title: 'Old', n: 3, snippet: 'an inbox' };
    const facts = { actions: [action('go.tasks', 'Inbox')], rows: [row('c', 'Inbox zero')], hits: [hit], go: () => {} };
    const shown = (words: string) =>
      entriesOf({ ...facts, words }).map(({ value, items }) => [value, items.map(({ title }) => title)]);
    expect(shown('')).toEqual([
      ['Go to', ['Inbox']],
      ['Open', ['Inbox zero']],
    ]);
    expect(shown('inbox').at(-1)).toEqual(['Found in turns', ['an inbox']]);
    const [turns] = entriesOf({ ...facts, actions: [], rows: [], words: 'an inbox; rm' });
    expect(turns?.items[0]?.cli).toBe("throughline search 'an inbox; rm'");
  });

  test('offers conversations by their titles also where the list was not read that far, and each once', () => {
    const hits = ['c', 'd'].map((id) => ({
      conversationId: id,
      key: null,
      title: `Inbox ${id}`,
      n: null,
      snippet: '',
    }));
    const groups = entriesOf({ words: 'inbox', actions: [], rows: [row('c', 'Inbox c')], hits, go: () => {} });
    expect(groups.map(({ value, items }) => [value, items.map(({ title }) => title)])).toEqual([
      ['Open', ['Inbox c', 'Inbox d']],
    ]);
  });

  test('shows a limited number of conversations', () => {
    const rows = Array.from({ length: 10_000 }, (_, n) => row(`c${n}`, `Conversation ${n}`));
    const [open] = entriesOf({ words: 'conversation', actions: [], rows, hits: [], go: () => {} });
    expect(open?.items).toHaveLength(8);
  });
});
