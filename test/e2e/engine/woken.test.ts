import { expect, test } from 'vitest';
import type { Store } from '../../../src/ports/store.ts';
import { allEvents, ended, event, run } from '../support/conversations.ts';
import { Home } from '../support/home.ts';

/** Nothing is found by polling during a test: a turn notices only what it is woken for. */
const NO_POLLING = { pollMs: 3_600_000 } as const;

test('a running turn is not woken by what it writes itself', async () => {
  await using home = new Home();
  let reads = 0;
  const counting = (store: Store): Store => ({
    ...store,
    findTurn: (...args) => {
      reads += 1;
      return store.findTurn(...args);
    },
  });
  const engine = await home.engine({ store: counting }, { ...NO_POLLING, flushMs: 1 });
  await engine.ensure({ key: 'chat' });
  await run(engine, 'chat', 'Hello.'); // the worker holds the conversation now: only a running turn still reads its own row
  reads = 0;
  // Alternating thoughts and text stay separate updates, although they come at once.
  const { turn } = await engine.submit('chat', `${'/think Hm.\n/say Well.\n'.repeat(5)}/stream 40 10`);
  await event(engine, 'chat', 'turn.ended', { turn: turn.id });
  const own = (await allEvents(engine, 'chat')).filter((one) => one.turnId === turn.id && one.kind === 'turn.update');
  expect(own.length).toBeGreaterThan(5);
  expect(reads).toBeLessThanOrEqual(1); // at its beginning, for what came before it listened
});

test.each(['this', 'another'])('a running turn is woken by a cancel from %s process', async (which) => {
  await using home = new Home();
  const { engine } = await home.open(NO_POLLING);
  const canceller = which === 'this' ? engine : (await home.host()).engine;
  await engine.ensure({ key: 'chat' });
  const { turn } = await engine.submit('chat', '/say beginning\n/hang');
  await event(engine, 'chat', 'turn.update', { turn: turn.id });
  await canceller.cancel(turn.id);
  expect((await ended(engine, turn)).state).toBe('cancelled');
});

test.each(['this', 'another'])(
  'a turn that waits for an answer is woken by an answer from %s process',
  async (which) => {
    await using home = new Home();
    const firstRead = Promise.withResolvers<void>();
    const watched = (store: Store): Store => ({
      ...store,
      openPermissions: async (...args) => {
        const open = await store.openPermissions(...args);
        firstRead.resolve();
        return open;
      },
    });
    const engine = await home.engine({ store: watched }, NO_POLLING);
    const answerer = which === 'this' ? engine : (await home.host()).engine;
    await engine.ensure({ key: 'chat' });
    const { turn } = await engine.submit('chat', '/ask May I?\n/say thank you');
    const { payload } = await event(engine, 'chat', 'permission.asked', { turn: turn.id });
    await firstRead.promise; // it found no answer, and is not repeated without a reason
    await answerer.answer(payload.permissionId, 'allow');
    expect((await ended(engine, turn)).state).toBe('completed');
  },
);

test('a cancel that comes at the same moment as a write of the turn itself is noticed', async () => {
  await using home = new Home();
  const { engine } = await home.open({ ...NO_POLLING, flushMs: 1 });
  await engine.ensure({ key: 'chat' });
  const { turn } = await engine.submit('chat', '/stream 100000 1');
  await event(engine, 'chat', 'turn.update', { turn: turn.id });
  await engine.cancel(turn.id);
  expect((await ended(engine, turn)).state).toBe('cancelled');
});
