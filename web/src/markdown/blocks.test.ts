import { describe, expect, test } from 'vitest';
import { type Lexed, lex, NOTHING_LEXED, safeHref } from './blocks.ts';

const shape = ({ blocks }: Lexed) => blocks.map(({ key, token }) => [key, token.type, token.raw.trim()]);

const spaced = (text = '') => text.replaceAll(/\s+/g, ' ').trim();

const ANSWER = [
  '# Title',
  'A paragraph with **bold** and `code`.\nIts second line.',
  '- one\n- two\n\n  more of two\n- three',
  '```ts\nconst a = 1;\n\n# not a heading\n```',
  '| a | b |\n|---|---|\n| 1 | 2 |',
  '> quoted\n> on',
  'Setext\n------',
  '~~~\nopen to the end\n```\nstill',
].join('\n\n');

describe('incremental markdown', () => {
  test.each([1, 2, 3, 7, 50])('in pieces of %i characters, ends like the whole text', (size) => {
    let lexed = NOTHING_LEXED;
    for (let end = size; end < ANSWER.length + size; end += size) lexed = lex(lexed, ANSWER.slice(0, end), true);
    expect(shape(lex(lexed, ANSWER, false))).toEqual(shape(lex(NOTHING_LEXED, ANSWER, false)));
  });

  test('a block that is followed by another stays the same object', () => {
    const first = lex(NOTHING_LEXED, 'One.\n\nTwo.\n\nThr', true);
    const then = lex(first, 'One.\n\nTwo.\n\nThree.\n\nFour', true);
    expect(then.blocks.slice(0, 2)).toEqual(first.blocks.slice(0, 2));
    expect(then.blocks[0]).toBe(first.blocks[0]);
    expect(then.end).toBeGreaterThan(first.end);
  });

  test('only the last block is lexed again, however long the text is, also in code', () => {
    const long = (size: number, unit: string) => lex(NOTHING_LEXED, unit.repeat(size), true);
    const prose = long(2_000, 'A sentence.\n\n');
    expect(prose.text.length - prose.end).toBeLessThan(40);
    const code = long(1, `\`\`\`\n${'a line\n'.repeat(2_000)}`);
    expect(code.fence?.searched).toBe(code.text.length);
  });

  test('a very long block is lexed again only when it has grown by some percent', () => {
    let [lexed, reads, shown] = [NOTHING_LEXED, 0, 0];
    const words = 'word '.repeat(10_000);
    for (let end = 50; end <= words.length; end += 50) {
      const next = lex(lexed, words.slice(0, end), true);
      if (next.text !== lexed.text && end > 10_000) reads += 1;
      if (end % 500 === 0) shown += Number(spaced(next.blocks[0]?.token.raw) === spaced(words.slice(0, end)));
      lexed = next;
    }
    expect(reads).toBeLessThan(20);
    // Every word is shown at once.
    expect(shown).toBe(words.length / 500);
    expect(lex(lexed, words, false).blocks[0]?.token.raw.trim()).toBe(words.trim());
  });

  test('what follows a very long paragraph is a block at once', () => {
    const long = 'word '.repeat(4_000);
    const before = lex(NOTHING_LEXED, long, true);
    const types = (text: string) => lex(before, text, true).blocks.map(({ token }) => token.type);
    expect(types(`${long}and on`)).toEqual(['paragraph']);
    expect(types(`${long}\n\n# Title`)).toEqual(['paragraph', 'heading']);
    expect(types(`${long}\n- item`)).toEqual(['paragraph', 'list']);
  });

  test('an unclosed mark at the end is closed while the text is being written', () => {
    const open = lex(NOTHING_LEXED, 'It is **very imp', true);
    expect(JSON.stringify(open.blocks[0]?.token)).toContain('"strong"');
    expect(JSON.stringify(lex(NOTHING_LEXED, 'It is **very imp', false).blocks)).not.toContain('"strong"');
  });

  test('a text that was replaced is lexed again', () => {
    const before = lex(NOTHING_LEXED, 'One.\n\nTwo.\n\nThree.', true);
    expect(shape(lex(before, 'Other.', true))).toEqual([[0, 'paragraph', 'Other.']]);
  });

  test('line ends of Windows and tabs do not break it', () => {
    const text = 'One.\r\n\r\n\tcode\r\n\r\nTwo.';
    let lexed = NOTHING_LEXED;
    for (let end = 1; end <= text.length; end += 1) lexed = lex(lexed, text.slice(0, end), true);
    expect(lexed.blocks.map(({ token }) => token.type)).toEqual(['paragraph', 'code', 'paragraph']);
  });
});

test.each([
  ['https://example.org/a?b#c', true],
  ['http://example.org', true],
  ['mailto:a@example.org', true],
  ['javascript:alert(1)', false],
  ['JaVaScRiPt:alert(1)', false],
  ['java\nscript:alert(1)', false],
  ['data:text/html,<script>', false],
  ['vbscript:x', false],
  ['file:///etc/passwd', false],
  ['//example.org', false],
  ['/c/1', false],
])('%j as a link: %s', (href, isAllowed) => {
  expect(safeHref(href)).toBe(isAllowed ? href : null);
});
