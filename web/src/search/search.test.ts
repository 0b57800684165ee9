import { describe, expect, test } from 'vitest';
import { countOf, hasWords, marked, pathOf, searchable } from './search.ts';

describe('words to look for', () => {
  test.each([
    ['  two   words ', 'two words'],
    ['?!', ''],
    ['', ''],
    ['ü', 'ü'],
  ])('%j is asked for as %j', (typed, asked) => expect(searchable(typed)).toBe(asked));

  test('lead to the turn, and are named there', () => {
    expect(pathOf({ conversationId: 'c', n: 3 }, 'a&b c')).toBe('/c/c/turn/3?find=a%26b%20c');
    expect(pathOf({ conversationId: 'c', n: null }, 'a&b c')).toBe('/c/c');
  });
});

test.each([
  [[], 'No title or turn contains all these words.'],
  [[1], '1 turn'],
  [[null, null, 4], '2 conversations by title, 1 turn'],
  [[null], '1 conversation by title'],
])('hits in %j are counted as %j', (places, said) => {
  expect(countOf(places.map((n) => ({ conversationId: 'c', key: null, title: 't', n, snippet: '' })))).toBe(said);
});

describe('a snippet', () => {
  const hits = (snippet: string, words: string) =>
    marked(snippet, words)
      .map(({ text, isHit }) => (isHit ? `[${text}]` : text))
      .join('');

  test.each([
    ['The codeword is amber', 'codeword', 'The [codeword] is amber'],
    ['Résumé and resume', 'resume', '[Résumé] and [resume]'],
    ['Two WORDS, two words', 'two words', '[Two] [WORDS], [two] [words]'],
    ['a.b (c) a+b', 'a+b', 'a.b (c) [a+b]'],
    ['Noted: a note', 'note', '[Noted]: a [note]'],
    ['Noted: a note here', 'note he', 'Noted: a [note] [here]'],
    ['nothing here', 'other', 'nothing here'],
    ['İstanbul 👩‍👩‍👧 ok', 'ok', 'İstanbul 👩‍👩‍👧 [ok]'],
    ['<b>x</b>', '<b>', '<[b]>x</[b]>'],
    ['', 'x', ''],
  ])('%j with %j marked', (snippet, words, expected) => expect(hits(snippet, words)).toBe(expected));
});

test.each([
  ['Amber is the codeword', 'codeword amb', true],
  ['Amber is the codeword', 'amb codeword', false],
  ['Amber is the codeword', 'codeword topaz', false],
  ['Ein Résumé', 'resume', true],
  ['anything', '?!', false],
])('%j has the words %j: %j', (text, words, expected) => expect(hasWords(text, words)).toBe(expected));
