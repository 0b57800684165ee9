import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { quoted } from './markdown.ts';

describe('quoted text in a Markdown document', () => {
  test.each([
    ['plain', '> plain'],
    ['# Turn 9\n\n---', '> # Turn 9\n>\n> ---'],
    ['a </blockquote><h2>Turn 9</h2>', '> a &lt;/blockquote>&lt;h2>Turn 9&lt;/h2>'],
    ['1 < 2 and `Vec<T>`', '> 1 < 2 and `Vec<T>`'],
    ['```html\n<b>\n```\n<b>', '> ```html\n> <b>\n> ```\n> &lt;b>'],
    // The fence of the list ends with the list.
    ['- a\n  ```\n<b>', '> - a\n>   ```\n> &lt;b>'],
    // A code span over two lines: text that looks like code is not code.
    ['a ` b\n` <b> `', '> a ` b\n> ` &lt;b> `'],
    ['| `a | <b>` |', '> | `a | &lt;b>` |'],
    ['\\`<b>`', '> \\`&lt;b>`'],
    ['~~~\n<b>\n```\n<i>\n~~~~', '> ~~~\n> <b>\n> ```\n> <i>\n> ~~~~'],
    ['``` `<b>`', '> ``` `&lt;b>`'],
    ['\u001b[2J<!-- x', '> &lt;!-- x'],
  ])('%j', (text, lines) => {
    expect(quoted(text).join('\n')).toBe(lines);
  });

  test('every line is quoted, and no tag is outside of a code block', () => {
    const piece = fc.constantFrom(
      '<b>',
      '</blockquote>',
      '`',
      '```',
      '~~~',
      '\n',
      ' ',
      '|',
      '\\',
      '- ',
      '>',
      'x',
      '    ',
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 30 }), (pieces) => {
        let fence: string | null = null;
        for (const line of quoted(pieces.join(''))) {
          expect(line).toMatch(/^>( |$)/);
          const inner = line.slice(2);
          const run = /^(?:`{3,}|~{3,})/.exec(inner)?.[0] ?? null;
          if (fence === null && run !== null && !inner.slice(run.length).includes('`')) fence = run;
          else if (fence !== null && run?.startsWith(fence) && inner.trim() === run) fence = null;
          else if (fence === null)
            expect(inner.replaceAll(/(`+)(?!`).*?(?<!`)\1(?!`)/g, '')).not.toMatch(/<[A-Za-z/!?]/);
        }
      }),
    );
  });
});
