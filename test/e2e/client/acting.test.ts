// An application with users of its own: `tl.as(user)` embedded, and through a server with one key that acts for these users.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { connect } from '../../../src/client.ts';
import { open } from '../../../src/index.ts';
import type { ThroughlineClient } from '../../../src/library/client.ts';
import { until } from '../../faults/harness/until.ts';
import { ServedHome } from '../http/support/served-home.ts';

type Way = 'embedded' | 'tcp' | 'socket';

/** The client that the application uses. The stack closes it. */
async function application(way: Way, stack: AsyncDisposableStack): Promise<ThroughlineClient> {
  if (way === 'embedded') {
    const home = stack.adopt(mkdtempSync(join(tmpdir(), 'throughline-acting-')), (path) =>
      rmSync(path, { recursive: true, force: true, maxRetries: 5 }),
    );
    return stack.use(await open({ home, settings: { agents: { scripted: { adapter: 'scripted' } } } }));
  }
  const home = stack.use(await ServedHome.start());
  const { key } = await home.key('app', ['act-as', 'read', 'prompt', 'approve'], null, 'app:*');
  return stack.use(
    await (way === 'tcp'
      ? connect({ url: home.url, token: key })
      : open({ server: `unix:${home.socket}`, token: key, home: join(home.path, 'home') })),
  );
}

/** Uses every part of the client as one user, and returns all that this user sees. Only the codeword differs between users. */
async function useAs(tl: ThroughlineClient, user: string, codeword: string) {
  const mine = tl.as(user);
  const chat = mine.conversation('chat');
  await chat.ensure();
  const frames: object[] = [];
  const live = mine.live([
    { feed: 'changes', of: 'hints' },
    { feed: 'board', of: 'board' },
    { feed: 'chat', of: 'conversation', conversation: 'chat' },
  ]);
  const watching = (async () => {
    for await (const frame of live) frames.push(frame);
  })();
  const first = await chat.ask(`The codeword is ${codeword}.`, { requestId: 'first' });
  const second = await chat.ask('Which codewords have you seen?', { requestId: 'second' });
  expect(second.reply).toBe(`I have seen these codewords: ${codeword}.`);
  const third = await chat.ask('/ask May I?', { requestId: 'third', onPermission: () => 'allow' });
  const tasks = await mine.tasks.run({ name: 'errand', goal: `The codeword is ${codeword}.` });
  const tracker = mine.tracker();
  await tracker.trackRequest('request', 'agent', `session of ${codeword}`, { prompt: `The codeword is ${codeword}.` });
  await tracker.completeRequest('request', { reply: codeword });
  await until('the live stream has the end of the task and of the last turn', () => {
    const text = JSON.stringify(frames);
    return text.includes('"done"') && /"n":3,"outcome":"completed"/.test(text);
  });
  live.close();
  await watching;
  return {
    ...{ first, second, third, tasks, frames },
    conversations: await mine.conversations(),
    events: await mine.engine.events('chat', { before: 'end' }),
    search: await mine.search('codeword'),
    usage: await mine.usage(),
    permissions: await mine.permissions(),
    listed: await mine.tasks.list(),
    tracked: [await tracker.getRequest('request'), await tracker.sessionHistory('agent')],
  };
}

test.each<Way>(['embedded', 'tcp', 'socket'])(
  '%s: two users of an application with the same keys and prompts see nothing of each other',
  async (way) => {
    await using stack = new AsyncDisposableStack();
    const tl = await application(way, stack);
    const [ann, bob] = await Promise.all([useAs(tl, 'app:ann', 'osprey'), useAs(tl, 'app:bob', 'wren')]);
    const [hers, his] = [JSON.stringify(ann), JSON.stringify(bob)];
    expect({ own: /osprey/.test(hers), other: /wren|app:bob/.test(hers) }).toEqual({ own: true, other: false });
    expect({ own: /wren/.test(his), other: /osprey|app:ann/.test(his) }).toEqual({ own: true, other: false });
    for (const { usage, conversations, search, listed } of [ann, bob]) {
      expect(usage.reduce((sum, { turns }) => sum + turns, 0)).toBe(5); // the chat’s, the task’s, the tracker’s
      expect(new Set(conversations.map(({ owner }) => owner)).size).toBe(1);
      expect([search.length > 0, listed.length]).toEqual([true, 1]);
    }
    // One user cannot reach the data of the other by its id, and other owners have no data.
    const { turn } = ann.first;
    const stranger = tl.as('app:bob');
    for (const call of [
      () => stranger.answerOf(turn.id),
      () => stranger.engine.conversation(turn.conversationId),
      () => stranger.engine.cancel(turn.id),
      () => stranger.tasks.task(ann.tasks[0]?.id ?? ''),
      () => stranger.answer(ann.permissions[0]?.id ?? '', 'allow'),
    ]) {
      await expect(call()).rejects.toMatchObject({ code: 'not_found' });
    }
    expect(await tl.as('app:zoe').conversations()).toEqual([]);
    expect(await tl.conversations()).toEqual([]);
    const by = way === 'embedded' ? /^app:ann$/ : /^app:ann by key [0-9a-f]+$/;
    expect(ann.permissions).toMatchObject([{ answeredBy: expect.stringMatching(by) }]);
  },
);

test('every part of the client refuses to act for an owner that the key was not given, and says what to do', async () => {
  await using stack = new AsyncDisposableStack();
  const tl = await application('tcp', stack);
  const other = tl.as('other:ann');
  const refused = { code: 'refused', message: /act for "app:\*", not for "other:ann"/, hint: /--owners/ };
  for (const call of [
    () => other.conversations(),
    () => other.conversation('chat').ask('hello'),
    () => other.tasks.list(),
    () => other.tracker().getRequest('x'),
    () => other.search('x'),
    () => other.usage(),
    async () => void (await other.hints()[Symbol.asyncIterator]().next()),
    async () =>
      void (await other
        .live([{ feed: 'changes', of: 'hints' }])
        [Symbol.asyncIterator]()
        .next()),
  ]) {
    const error = await call().then(
      () => null,
      (thrown: unknown) => thrown,
    );
    expect(error).toMatchObject({
      ...{
        code: refused.code,
        message: expect.stringMatching(refused.message),
        hint: expect.stringMatching(refused.hint),
      },
    });
  }
  expect(tl.engine.owner).toBe('app');
  expect(await tl.as('app').conversations()).toEqual([]);
});

test('a client may connect as one of its users, and act for the others', async () => {
  await using home = await ServedHome.start();
  const { key } = await home.key('app', ['act-as', 'read', 'prompt'], null, 'app:*');
  await using ann = await connect({ url: home.url, token: key, owner: 'app:ann' });
  expect(ann.engine.owner).toBe('app:ann');
  await ann.conversation('chat').ensure();
  await ann.as('app:bob').conversation('his').ensure();
  expect((await ann.conversations()).map((one) => [one.owner, one.key])).toEqual([['app:ann', 'chat']]);
  expect((await ann.as('app:bob').conversations()).map((one) => one.key)).toEqual(['his']);
  await expect(connect({ url: home.url, token: key, owner: 'bob' })).rejects.toMatchObject({ code: 'refused' });
});
