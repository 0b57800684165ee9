import fc from 'fast-check';
import { expect, test } from 'vitest';
import { worked } from '../../../../../test/values/worked.ts';
import type { Line } from './cells.ts';
import { AT_START, inline, type Place, renderMarkdown } from './markdown.ts';

const text = (line: Line) => line.map((one) => one.text).join('');
const whole = (source: string, width = 40) =>
  renderMarkdown(source, AT_START, width, true).finished.flatMap(({ lines }) => lines);
const shown = (source: string, width = 40) => whole(source, width).map(text);

test.each<[string, string, string[]]>([
  ['a heading', '# Title\ntext', ['Title', 'text']],
  ['a heading with closing marks', '## Title ##', ['Title']],
  ['paragraphs', 'one\ntwo\n\n\nthree', ['one', 'two', '', 'three']],
  ['a list', '- one\n* two\n  more\n  - deep\n10. ten', ['• one', '• two', '  more', '  • deep', '10. ten']],
  ['boxes', '- [ ] open\n- [x] done', ['• ☐ open', '• ☑ done']],
  ['code', 'Run:\n```sh\n  ls   -l\n```\nDone', ['Run:', '', '  sh', '    ls   -l', 'Done']],
  ['code that is not closed', '~~~\na\n\nb', ['  a', '  ', '  b']],
  ['a quote', '> said **so**\n> and so', ['│ said so', '│ and so']],
  ['a rule', 'a\n\n---\nb', ['a', '', '─'.repeat(24), 'b']],
  ['no rule', '--x', ['--x']],
  [
    'a table',
    '| a | n |\n|---|--:|\n| 日本 | 1 |\n| x \\| y | 22 |\n\nend',
    ['a     │  n', '──────┼───', '日本  │  1', 'x | y │ 22', '', 'end'],
  ],
  ['no table', 'a | b\nc | d', ['a | b', 'c | d']],
])('%s', (_, source, expected) => {
  expect(shown(source)).toEqual(expected);
});

test('a table that is too wide breaks within its cells', () => {
  const lines = shown('| key | words |\n|---|---|\n| a | some words that do not fit into it |', 24);
  expect(lines).toEqual(
    ['key │ words', '────┼───────────────────', 'a   │ some words that do ', '    │ not fit into it    '].map((line) =>
      expect.stringContaining(line.trimEnd()),
    ),
  );
  for (const line of lines) expect(line.length).toBeLessThanOrEqual(24);
});

test.each<[string, [string, ...string[]][]]>([
  ['**b** and *i*', [['b', 'bold'], [' and '], ['i', 'italic']]],
  ['__b__ _i_ ~~s~~', [['b', 'bold'], [' '], ['i', 'italic'], [' '], ['s', 'strike']]],
  ['`a **b**`', [['a **b**', 'cyan']]],
  ['`` a`b ``', [['a`b', 'cyan']]],
  [
    '**a *b* c**',
    [
      ['a ', 'bold'],
      ['b', 'bold', 'italic'],
      [' c', 'bold'],
    ],
  ],
  ['snake_case_name 2*3*4', [['snake_case_name 2'], ['3', 'italic'], ['4']]],
  ['a ** b ** c', [['a ** b ** c']]],
  ['\\*no\\*', [['*no*']]],
  [
    '[words](https://x.org/a_b)',
    [
      ['words', 'underline'],
      [' (https://x.org/a_b)', 'dim'],
    ],
  ],
  ['<https://x.org>', [['https://x.org', 'underline']]],
  [
    '![alt](pic.png)',
    [
      ['alt', 'underline'],
      [' (pic.png)', 'dim'],
    ],
  ],
  ['an `open', [['an '], ['`'], ['open']]],
])('inside a line: %s', (source, expected) => {
  const spans = inline(source, [], false).map(({ text: words, styles }) => [words, ...styles]);
  expect(spans).toEqual(expected);
});

test('an unclosed element is shown with its style while the text arrives', () => {
  const { open } = renderMarkdown('so **very imp', AT_START, 40, false);
  expect(open()).toEqual([[expect.anything(), { text: 'so ', styles: [] }, { text: 'very imp', styles: ['bold'] }]]);
});

const PIECES = [
  '# T\n',
  '- a\n',
  '  b\n',
  '\n',
  '```\n',
  'x ',
  '**',
  '`',
  '|a|b|\n',
  '|-|-|\n',
  '> q\n',
  '1. n\n',
  '日本',
  '\n\n',
  '---\n',
  '_',
];

test('wherever the text is split, the permanently printed lines are those of the whole text', () => {
  const pieces = fc.array(fc.constantFrom(...PIECES), { maxLength: 16 });
  fc.assert(
    fc.property(pieces, fc.integer({ min: 8, max: 30 }), (parts, width) => {
      const source = parts.join('');
      const printed: Line[] = [];
      let place: Place = AT_START;
      let from = 0;
      for (let end = 1; end <= source.length; end += 1) {
        const { finished } = renderMarkdown(source.slice(from, end), place, width, end === source.length);
        printed.push(...finished.flatMap(({ lines }) => lines));
        from += finished.at(-1)?.end ?? 0;
        place = finished.at(-1)?.place ?? place;
      }
      expect(printed.map(text)).toEqual(shown(source, width));
    }),
    { numRuns: 500 },
  );
});

test.each(['*', '_', '`', '[', '![](', '# ', '```', '|', '> ', '- ', '~~', '\\', '<http', '  ', '**a', '|-'])(
  'a long text made of %j is rendered quickly',
  (piece) => {
    const { ms } = worked(() => {
      whole(piece.repeat(50_000));
      whole(`${piece.repeat(5_000)}\n`.repeat(4));
    });
    expect(ms).toBeLessThan(3_000);
  },
);
