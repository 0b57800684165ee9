import { expect, test } from 'vitest';
import type { ContentBlock } from '../../../core/turn/content.ts';
import { literally, withoutMark } from './literal.ts';

const text = (content: string): ContentBlock => ({ type: 'text', text: content });
const begins = ([block]: readonly ContentBlock[]) => (block?.type === 'text' ? block.text.charAt(0) : null);

test.each(['/clear', ' \n/compact', '$skill', '/etc/hosts has a wrong entry.'])(
  '%j is sent so that it does not start like a command',
  (said) => {
    const prompt = literally([text(said)]);
    expect(begins(prompt)).toBe('T');
    expect(prompt.map((block) => (block.type === 'text' ? withoutMark(block.text) : ''))).toEqual([said]);
  },
);

test('any block may be the one that an agent looks at; all else stays as it is', () => {
  const image: ContentBlock = { type: 'image', mimeType: 'image/png', data: 'AA==' };
  const plain = [text('Look at /etc/hosts.'), image, text('5 $')];
  expect(literally(plain)).toEqual(plain);
  expect(literally([text('Look:'), image, text('/clear')]).slice(0, 2)).toEqual([text('Look:'), image]);
  expect(begins(literally([text('Look:'), text('/clear')]).slice(1))).toBe('T');
});
