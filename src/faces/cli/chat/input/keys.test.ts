import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type Key, KeyReader } from './keys.ts';

const names = (keys: readonly Key[]) => keys.map((key) => ('text' in key ? `${key.name}:${key.text}` : key.name));
const read = (...chunks: string[]) => {
  const reader = new KeyReader();
  return names([...chunks.flatMap((chunk) => reader.push(chunk)), ...reader.flush()]);
};

test.each<[string, string[]]>([
  ['hello', ['text:hello']],
  ['日本 👩‍💻', ['text:日本 👩‍💻']],
  ['a\rb', ['text:a', 'enter', 'text:b']],
  ['\u001b\r', ['newline']],
  ['\n', ['newline']],
  ['\u001b[13;2u', ['newline']],
  ['\u001b[27;2;13~', ['newline']],
  ['\u001b[13u', ['enter']],
  ['\u001b[99;5u', ['interrupt']],
  ['\u001b[27u', ['escape']],
  ['\u001b[97;1u', ['text:a']],
  ['\u0003\u0004\u001a', ['interrupt', 'eof', 'suspend']],
  ['\u0001\u0005\u000b\u0015\u0017\u0019', ['home', 'end', 'kill-end', 'kill-start', 'delete-word', 'yank']],
  ['\u007f\b\t', ['backspace', 'backspace', 'tab']],
  ['\u001b[A\u001bOB\u001b[C\u001b[D', ['up', 'down', 'right', 'left']],
  ['\u001b[H\u001b[F\u001b[1~\u001b[4~\u001b[3~', ['home', 'end', 'home', 'end', 'delete']],
  [
    '\u001b[1;5C\u001b[1;3D\u001bb\u001bf\u001b\u007f',
    ['word-right', 'word-left', 'word-left', 'word-right', 'delete-word'],
  ],
  ['\u001b[200~one\rtwo\r\nthree\u001b[201~x', ['paste:one\ntwo\nthree', 'text:x']],
  ['\u001b[200~a\u001b[31mb\u0007\u001b[201~', ['paste:ab']],
  ['\u001b[200~\u202eabc\u200f \ufeffd\u001b[201~', ['paste:\u202eabc\u200f \ufeffd']],
  ['\u001b[57414u\u001b[57417u\u001b[57426u', ['enter', 'left', 'delete']],
  ['\u001b', ['escape']],
  ['\u001b\u001b[A', ['escape', 'up']],
  ['\u001b[?1;2c\u001b[I', []],
  ['\u001b[200~', []],
])('%j', (given, expected) => {
  expect(read(given)).toEqual(expected);
});

test('the keys do not depend on how the input is split', () => {
  const sequences = ['a', 'ü', '\r', '\u001b[A', '\u001b[13;2u', '\u001b\r', '\u001b[200~x\ry\u001b[201~', '\u0003'];
  const input = fc.array(fc.constantFrom(...sequences), { maxLength: 8 }).map((parts) => parts.join(''));
  fc.assert(
    fc.property(input, fc.infiniteStream(fc.integer({ min: 1, max: 4 })), (text, sizes) => {
      const chunks: string[] = [];
      for (let at = 0; at < text.length; ) {
        const size = sizes.next().value;
        chunks.push(text.slice(at, at + size));
        at += size;
      }
      // Text in several chunks is the same text.
      const joined = (all: string[]) => {
        const keys: string[] = [];
        for (const key of all) {
          const isMore = key.startsWith('text:') && keys.at(-1)?.startsWith('text:');
          if (isMore) keys.push(`${keys.pop()}${key.slice('text:'.length)}`);
          else keys.push(key);
        }
        return keys;
      };
      expect(joined(read(...chunks))).toEqual(joined(read(text)));
    }),
  );
});
