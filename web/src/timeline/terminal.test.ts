import { expect, test } from 'vitest';
import { linesOf } from './terminal.ts';

const ESC = '\u001b';
const text = (output: string) => linesOf(output).map((line) => line.map((segment) => segment.text).join(''));
const looks = (output: string) =>
  linesOf(output)
    .flat()
    .map(({ text: words, look }) => [words, look]);

test.each([
  ['plain lines', 'a\nb', ['a', 'b']],
  ['line ends of Windows', 'a\r\nb\r\r\nc', ['a', 'b', 'c']],
  ['a line that is written over', '10 %\r50 %\r100 %\ndone', ['100 %', 'done']],
  ['a shorter one over it', 'working…\rok', ['okrking…']],
  ['a line that is erased and written again', `working…\r${ESC}[Kok`, ['ok']],
  ['the rest of a line', `abcdef\rab${ESC}[0K`, ['ab']],
  ['a whole line', `abc${ESC}[2K\rx`, ['x']],
  ['characters that are taken back', 'abd\bc\n\b\bx', ['abc', 'x']],
  ['moves of the cursor', `${ESC}[2Aa${ESC}[10;3Hb${ESC}[?25l${ESC}[2Jc`, ['abc']],
  ['titles and links', `${ESC}]0;title\u0007a${ESC}]8;;https://x${ESC}\\b`, ['ab']],
  ['other sequences', `${ESC}(Ba${ESC}=b${ESC}7c`, ['abc']],
  ['an unfinished sequence', `a${ESC}[31`, ['a']],
  ['control characters', 'a\u0000\u0007\u009bb\tc', ['ab\tc']],
])('%s', (_name, output, expected) => {
  expect(text(output)).toEqual(expected);
});

test.each([
  [
    'one of 16 colours',
    `a${ESC}[31mb${ESC}[0mc`,
    [
      ['a', ''],
      ['b', 'text-del'],
      ['c', ''],
    ],
  ],
  [
    'a bright one, to the default',
    `${ESC}[92ma${ESC}[39mb`,
    [
      ['a', 'text-add'],
      ['b', ''],
    ],
  ],
  [
    'a background',
    `${ESC}[41;1ma${ESC}[49;22mb`,
    [
      ['a', 'bg-del-soft font-semibold'],
      ['b', ''],
    ],
  ],
  ['black and white', `${ESC}[30ma${ESC}[37mb`, [['ab', 'text-ink']]],
  ['grey', `${ESC}[90ma`, [['a', 'text-faint']]],
  [
    'of 256',
    `${ESC}[38;5;196ma${ESC}[38;5;240mb${ESC}[38;5;3mc`,
    [
      ['a', 'text-del'],
      ['b', 'text-faint'],
      ['c', 'text-look'],
    ],
  ],
  [
    'of 16 million',
    `${ESC}[38;2;80;120;255ma${ESC}[48;2;0;90;0mb`,
    [
      ['a', 'text-code-name'],
      ['b', 'text-code-name bg-add-soft'],
    ],
  ],
  [
    'with colons',
    `${ESC}[38:2::255:0:200ma${ESC}[4:3mb${ESC}[4:0mc`,
    [
      ['a', 'text-code-key'],
      ['b', 'text-code-key underline'],
      ['c', 'text-code-key'],
    ],
  ],
  [
    'reversed',
    `${ESC}[7ma${ESC}[27mb`,
    [
      ['a', 'bg-ink text-on-ink'],
      ['b', ''],
    ],
  ],
  [
    'nothing between semicolons',
    `${ESC}[;31ma${ESC}[mb`,
    [
      ['a', 'text-del'],
      ['b', ''],
    ],
  ],
  [
    'colours over a line',
    `${ESC}[32m10 %\r${ESC}[31m9`,
    [
      ['9', 'text-del'],
      ['0 %', 'text-add'],
    ],
  ],
  ['a colour that does not exist', `${ESC}[38;5;999ma${ESC}[38;2;1mb`, [['ab', '']]],
  [
    'over the end of a line',
    `${ESC}[31ma\nb`,
    [
      ['a', 'text-del'],
      ['b', 'text-del'],
    ],
  ],
])('colours: %s', (_name, output, expected) => {
  expect(looks(output)).toEqual(expected);
});

test('a million progress steps take no longer than a moment', () => {
  const began = performance.now();
  expect(text(`${'x'.repeat(80)}\r`.repeat(12_500)).at(-1)).toBe('x'.repeat(80));
  // Far more than it takes, also on a busy machine; if every step copied what came before, it would take minutes.
  expect(performance.now() - began).toBeLessThan(10_000);
});
