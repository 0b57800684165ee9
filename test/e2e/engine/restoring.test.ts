import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { Agent } from '../../../src/ports/agent.ts';
import type { Engine } from '../../../src/ports/engine.ts';
import { allEvents, ended, event, WHICH_CODEWORDS } from '../support/conversations.ts';
import { Home, ONE_STORAGE } from '../support/home.ts';

// A follower sees that a session is being restored, and by which rung, while the restore runs.

/** Makes a conversation with three turns, in an engine that is closed. */
async function makeThreeTurns(home: Home): Promise<void> {
  const tl = await home.open();
  for (let n = 1; n <= 3; n += 1) await tl.conversation('chat').ask(`The codeword is word-${n}.`);
  await tl.close();
}

/** The events about the restore of a turn, in order, without the receipts. */
async function steps(engine: Engine, turn: string) {
  const events = (await allEvents(engine, 'chat')).filter(({ turnId }) => turnId === turn);
  return events.flatMap<unknown>(({ kind, payload }) => {
    if (kind === 'restore.started') return [['started', payload.rung, payload.total]];
    if (kind === 'restore.progress') return [['progress', payload.rung, payload.done, payload.total]];
    return kind === 'restore.tried' ? [['tried', payload.rung]] : kind === 'turn.sent' ? ['sent'] : [];
  });
}

test.each([
  ['resume', {}],
  ['transcript', { resume: 'none' }],
  ['replay', {}],
] as const)('a follower is told that %s has begun while the agent still starts', async (rung, options) => {
  await using home = new Home({ a: options });
  await makeThreeTurns(home);
  const mayStart = Promise.withResolvers<void>();
  const slow = (agent: Agent): Agent => ({
    ...agent,
    async open(request) {
      await mayStart.promise;
      return agent.open(request);
    },
  });
  const [engine, other] = await Promise.all([home.engine({ agent: slow }), home.open()]);
  const { turn } = await engine.submit(
    'chat',
    WHICH_CODEWORDS,
    rung === 'replay' ? { restore: { rebuild: true, rung } } : {},
  );
  const started = await event(other.engine, 'chat', 'restore.started', { turn: turn.id });
  expect((await other.engine.turn(turn.id)).sent).toBeNull();
  expect(started.payload).toEqual({ rung, total: 3 });
  mayStart.resolve();
  await ended(engine, turn);
  const all = await steps(engine, turn.id);
  expect(all[0]).toEqual(['started', rung, 3]);
  expect(all.slice(-2)).toEqual([['progress', rung, 3, 3], 'sent']);
});

test('a follower is told of a rung that fails and of the next one', async () => {
  await using home = new Home({ a: { dir: ONE_STORAGE } });
  await makeThreeTurns(home);
  rmSync(join(home.sandboxes, 'storage'), { recursive: true });
  const tl = await home.open();
  const { turn } = await tl.conversation('chat').ask(WHICH_CODEWORDS, { restore: { lastTurns: 2 } });
  expect(await steps(tl.engine, turn.id)).toEqual([
    ['started', 'resume', 3],
    ['tried', 'resume'],
    ['started', 'transcript', 3],
    ['progress', 'transcript', 2, 2],
    'sent',
  ]);
});

test('a follower is told of the restore of a warm-up as well, and the next turn restores nothing', async () => {
  await using home = new Home({ a: {} });
  await makeThreeTurns(home);
  const tl = await home.open();
  await tl.engine.warm('chat');
  const started = (await allEvents(tl.engine, 'chat')).filter(({ kind }) => kind === 'restore.started');
  expect(started).toMatchObject([{ turnId: null, payload: { rung: 'resume', total: 3 } }]);
  const { turn } = await tl.conversation('chat').ask(WHICH_CODEWORDS);
  expect(await steps(tl.engine, turn.id)).toEqual(['sent']);
});

test('the receipt of a warm-up that is not possible says why', async () => {
  await using home = new Home({ a: { noTools: false } });
  await makeThreeTurns(home);
  const tl = await home.open();
  const receipt = await tl.engine.warm('chat', { restore: { rung: 'replay', rebuild: true } });
  const failure = expect.stringContaining('no proved no-tools profile');
  expect(receipt).toMatchObject({ rung: 'none', dropped: 3, tried: [{ rung: 'replay', sessionId: null, failure }] });
});

test('a first turn and a turn with the policy "off" restore nothing', async () => {
  await using home = new Home({ a: {} });
  const tl = await home.open();
  const chat = tl.conversation('chat');
  const first = await chat.ask('Hello.');
  const fresh = await chat.ask('Hello.', { restore: { policy: 'off' } });
  for (const { turn } of [first, fresh]) expect(await steps(tl.engine, turn.id)).toEqual(['sent']);
});
