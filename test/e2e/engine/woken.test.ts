import { expect, test } from 'vitest';
import type { Store } from '../../../src/ports/store.ts';
import { allEvents, ended, event, run } from '../support/conversations.ts';
import { Home } from '../support/home.ts';

/** So rarely that nothing here is ever found by looking: whatever a turn hears of, it was woken for. */
const NEVER = { pollMs: 3_600_000 } as const;

test('a running turn is not woken by what it writes itself', async () => {
  await using home = new Home();
  let looks = 0;
  const counting = (store: Store): Store => ({
    ...store,
    findTurn: (...args) => {
      looks += 1;
      return store.findTurn(...args);
    },
  });
  const engine = await home.engine({ store: counting }, { ...NEVER, flushMs: 1 });
  await engine.ensure({ key: 'chat' });
  await run(engine, 'chat', 'Hello.'); // from here on the conversation is held, and only the turn itself looks at it
  looks = 0;
  // Thoughts and words in turn are not joined, however much of them comes at once.
  const { turn } = await engine.submit('chat', `${'/think Hm.\n/say Well.\n'.repeat(5)}/stream 40 10`);
  await event(engine, 'chat', 'turn.ended', { turn: turn.id });
  const own = (await allEvents(engine, 'chat')).filter((one) => one.turnId === turn.id && one.kind === 'turn.update');
  expect(own.length).toBeGreaterThan(5);
  expect(looks).toBeLessThanOrEqual(1); // for what came before it listened
});

test.each(['this', 'another'])('a running turn is woken by a cancel from %s process', async (which) => {
  await using home = new Home();
  const { engine } = await home.open(NEVER);
  const asker = which === 'this' ? engine : (await home.host()).engine;
  await engine.ensure({ key: 'chat' });
  const { turn } = await engine.submit('chat', '/say beginning\n/hang');
  await event(engine, 'chat', 'turn.update', { turn: turn.id });
  await asker.cancel(turn.id);
  expect((await ended(engine, turn)).state).toBe('cancelled');
});

test.each(['this', 'another'])('a turn that has asked is woken by an answer from %s process', async (which) => {
  await using home = new Home();
  const looked = Promise.withResolvers<void>();
  const watched = (store: Store): Store => ({
    ...store,
    findPermission: async (...args) => {
      const found = await store.findPermission(...args);
      looked.resolve();
      return found;
    },
  });
  const engine = await home.engine({ store: watched }, NEVER);
  const answerer = which === 'this' ? engine : (await home.host()).engine;
  await engine.ensure({ key: 'chat' });
  const { turn } = await engine.submit('chat', '/ask May I?\n/say thank you');
  const { payload } = await event(engine, 'chat', 'permission.asked', { turn: turn.id });
  await looked.promise; // and found no answer: another look needs a reason
  await answerer.answer(payload.permissionId, 'allow');
  expect((await ended(engine, turn)).state).toBe('completed');
});

test('a cancel that comes at the same moment as what the turn writes is heard', async () => {
  await using home = new Home();
  const { engine } = await home.open({ ...NEVER, flushMs: 1 });
  await engine.ensure({ key: 'chat' });
  const { turn } = await engine.submit('chat', '/stream 100000 1');
  await event(engine, 'chat', 'turn.update', { turn: turn.id });
  await engine.cancel(turn.id);
  expect((await ended(engine, turn)).state).toBe('cancelled');
});
