import { expect, test } from 'vitest';
import { promptBlocks, userMessage, worded } from './user-message.ts';

test('a prompt keeps its text and images; everything else becomes text', () => {
  const { message, uuid, session_id } = userMessage(
    [
      { type: 'text', text: 'Look:' },
      { type: 'text', text: ' ' },
      { type: 'image', data: 'AAAA', mimeType: 'image/png' },
      { type: 'image', data: 'AAAA', mimeType: 'image/tiff' },
      { type: 'image', data: 'no base64', mimeType: 'image/gif' },
      { type: 'resource_link', uri: 'file:///a', name: 'a' },
      { type: 'resource', resource: { uri: 'file:///b', text: 'inside' } },
      { type: 'audio', data: 'AAAA', mimeType: 'audio/wav' },
    ],
    'the-uuid',
    'the-session',
  );
  expect([uuid, session_id]).toEqual(['the-uuid', 'the-session']);
  expect(message.content).toEqual([
    { type: 'text', text: 'Look:' },
    { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAA' } },
    { type: 'text', text: '[image image/tiff]' },
    { type: 'text', text: '[image image/gif]' },
    { type: 'text', text: '[link a: file:///a]' },
    { type: 'text', text: '[file file:///b]\ninside' },
    { type: 'text', text: '[audio audio/wav]' },
  ]);
});

test('the wording of a prompt is what is sent', () => {
  const plain = [
    { type: 'text', text: 'Look:' },
    { type: 'image', data: 'AAAA', mimeType: 'image/png' },
  ] as const;
  expect(worded(plain)).toBe(plain);
  const changed = [
    ...plain,
    { type: 'text', text: ' ' },
    { type: 'resource', resource: { uri: 'file:///b', text: 'inside' } },
  ] as const;
  expect(worded(changed)).toEqual([...plain, { type: 'text', text: '[file file:///b]\ninside' }]);
  expect(promptBlocks(worded(changed))).toEqual(promptBlocks(changed));
});
