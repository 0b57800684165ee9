import { describe, expect, test } from 'vitest';
import { attachmentsIn, blockOf, promptOf, tooMuch, withWords, wordsIn } from './prompt.ts';

const bytes = (...values: number[]) => Uint8Array.from(values);
const text = (words: string) => new TextEncoder().encode(words);
const PNG = bytes(0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 1, 2, 3);

describe('a file as a block', () => {
  test('an image is recognised by its bytes, whatever its name is', () => {
    expect(blockOf('notes.txt', PNG)).toMatchObject({ type: 'image', mimeType: 'image/png' });
  });

  test('a text is sent with its name', () => {
    expect(blockOf('a b.md', text('# Hi'))).toEqual({
      type: 'resource',
      resource: { uri: 'file:///a%20b.md', text: '# Hi' },
    });
  });

  test.each([
    ['a zero byte', bytes(65, 0, 66)],
    ['a text that is not UTF-8', bytes(0xff, 0xfe, 0xfd)],
  ])('%s is refused with its name and what to do', (_name, content) => {
    expect(() => blockOf('x.bin', content)).toThrow(/^x\.bin is neither text .* Write its path/);
  });

  test('a file that is larger than a prompt may be is refused', () => {
    expect(() => blockOf('big.txt', new Uint8Array(9 * 2 ** 20))).toThrow('big.txt has 9 MiB; the limit is 8 MiB.');
  });
});

describe('a prompt', () => {
  const file = { id: '1', name: 'a.md', block: blockOf('a.md', text('hi')) };

  test('ends with its text', () => {
    expect(promptOf('Look', [file]).map(({ type }) => type)).toEqual(['resource', 'text']);
    expect(promptOf('  ', [file])).toHaveLength(1);
  });

  test('of more than 8 MiB is refused before it is sent', () => {
    const half = { ...file, block: blockOf('h.txt', text('x'.repeat(4.1 * 2 ** 20))) };
    expect(tooMuch(promptOf('both', [half]))).toBeNull();
    expect(tooMuch(promptOf('both', [half, half]))).toContain('the limit is 8 MiB');
  });

  test('keeps its files when its text is edited', () => {
    const prompt = promptOf('Look', [file]);
    expect(withWords(prompt, 'Read')).toEqual([file.block, { type: 'text', text: 'Read' }]);
    expect(wordsIn(prompt)).toBe('Look');
    expect(attachmentsIn(prompt)).toMatchObject([{ name: 'a.md' }]);
  });
});
