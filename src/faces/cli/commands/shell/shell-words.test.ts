import { describe, expect, test } from 'vitest';
import { parseLine, quotedFor } from './shell-words.ts';

const BREAKS = ' \t\n"\'@><=;|&(:';

describe('a line of bash, up to the cursor', () => {
  test.each([
    ['throughline ', ['throughline'], '', '', ''],
    ['throughline sh', ['throughline'], 'sh', '', ''],
    ['throughline show my\\ k', ['throughline', 'show'], 'my k', '', ''],
    ['throughline show "my k', ['throughline', 'show'], 'my k', '', '"'],
    ["throughline show 'it", ['throughline', 'show'], 'it', '', "'"],
    ['throughline show "a\\"b" c', ['throughline', 'show', 'a"b'], 'c', '', ''],
    ['throughline show slack:C0', ['throughline', 'show'], 'slack:C0', 'slack:', ''],
    ['throughline show slack\\:C0', ['throughline', 'show'], 'slack:C0', '', ''],
    ['throughline send --agent=cl', ['throughline', 'send'], '--agent=cl', '--agent=', ''],
    ['git diff | throughline send ', ['throughline', 'send'], '', '', ''],
    ["throughline show ''", ['throughline', 'show'], '', '', ''],
  ])('%s', (line, before, current, kept, quote) => {
    expect(parseLine(line, BREAKS)).toEqual({ before, current, kept, quote });
  });
});

test('a name is completed in the quoting in which it began, with special characters escaped', () => {
  const name = `it's a "$(key)" \`x\` ~ * ü`;
  expect(quotedFor(name, { kept: '', quote: '' })).toBe(`it\\'s\\ a\\ \\"\\$\\(key\\)\\"\\ \\\`x\\\`\\ \\~\\ \\*\\ ü`);
  expect(quotedFor(name, { kept: '', quote: '"' })).toBe(`it's a \\"\\$(key)\\" \\\`x\\\` ~ * ü`);
  expect(quotedFor(name, { kept: '', quote: "'" })).toBe(`it'\\''s a "$(key)" \`x\` ~ * ü`);
  expect(quotedFor('slack:C0:1', { kept: 'slack:', quote: '' })).toBe('C0\\:1');
});
