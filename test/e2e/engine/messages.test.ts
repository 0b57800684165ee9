import { expect, test } from 'vitest';
import type { Message } from '../../../src/index.ts';
import { codewordsIn, refusedWith, WHICH_CODEWORDS } from '../support/conversations.ts';
import { Home } from '../support/home.ts';

const MESSAGES: Message[] = [
  { role: 'user', content: 'The codeword is amber.' },
  {
    role: 'assistant',
    content: [
      { type: 'text', text: 'I write it down.' },
      { type: 'tool-call', toolCallId: 'c1', toolName: 'write', input: { path: 'notes.txt' } },
    ],
  },
  {
    role: 'tool',
    content: [{ type: 'tool-result', toolCallId: 'c1', toolName: 'write', output: { type: 'text', value: 'written' } }],
  },
  { role: 'assistant', content: 'Noted.' },
  {
    role: 'user',
    content: [
      { type: 'text', text: 'The codeword is birch.' },
      { type: 'image', image: new Uint8Array([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]) },
      { type: 'file', data: new URL('https://example.org/plan.pdf'), mediaType: 'application/pdf' },
    ],
  },
];

test('messages that a program has stored itself are imported as turns, and the next session is told of them', async () => {
  await using home = new Home();
  const tl = await home.open();
  const chat = await tl.import(MESSAGES, { key: 'ticket', agent: 'scripted' });
  expect(await chat.get()).toMatchObject({
    key: 'ticket',
    agent: 'scripted',
    title: 'The codeword is amber.',
    head: 2,
  });
  expect(await chat.turns()).toMatchObject([
    { n: 1, imported: true, agent: 'scripted', state: 'completed', reply: 'I write it down.\n\nNoted.' },
    {
      ...{ n: 2, imported: true, state: 'interrupted', reply: '' },
      prompt: [
        { type: 'text' },
        { type: 'image', data: 'iVBORw0KGgo=', mimeType: 'image/png' },
        { type: 'resource_link', uri: 'https://example.org/plan.pdf' },
      ],
    },
  ]);
  const [{ parts } = { parts: [] }] = await chat.records();
  expect(parts).toMatchObject([
    { type: 'text' },
    { name: 'write', target: 'notes.txt', output: 'written' },
    { type: 'text' },
  ]);
  // The last message had no answer: its turn can be retried.
  const retried = await chat.retry();
  expect(retried.turn).toMatchObject({ n: 3, state: 'completed', retryOf: (await chat.turns())[1]?.id });
  const { reply, receipt } = await chat.ask(WHICH_CODEWORDS);
  expect(new Set(codewordsIn(reply))).toEqual(new Set(['amber', 'birch']));
  expect([retried.receipt, receipt]).toMatchObject([
    { rung: 'transcript', carried: 2 },
    { rung: 'live', carried: 3 },
  ]);
});

test('messages that cannot be imported are refused, and no conversation is created', async () => {
  await using home = new Home();
  const tl = await home.open();
  const [hello] = MESSAGES;
  if (hello === undefined) throw new Error('MESSAGES is empty');
  await refusedWith(
    'invalid',
    tl.import([{ role: 'system', content: 'Be kind.' }, hello]),
    /Message 1 has the role "system"/,
  );
  await refusedWith('invalid', tl.import([]), /the list is empty/);
  await refusedWith('agent_unavailable', tl.import([hello], { agent: 'nobody' }), /There is no agent "nobody"/);
  await refusedWith('invalid', tl.import([hello], { kye: 'a' } as never), /import\(\) has no option "kye"/);
  const chat = tl.conversation('chat');
  await chat.ask('Hello.');
  await refusedWith('refused', tl.import(await chat.export(), { key: 'a', agent: 'scripted' }), /names its own agents/);
  await refusedWith('conflict', tl.import([hello], { key: 'chat' }), /exists already/);
  expect(await tl.conversations()).toHaveLength(1);
  // Without an agent, the conversation gets the default agent.
  expect(await (await tl.import([hello])).get()).toMatchObject({ key: null, agent: 'scripted' });
});
