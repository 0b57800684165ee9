import { expect, test } from 'vitest';
import { BenchHome } from '../../../bench/support/bench-home.ts';
import { TurnWatch } from '../../../bench/support/turn-watch.ts';
import type { Agent } from '../../../src/ports/agent.ts';
import { keptWarm } from '../support/kept-warm.ts';
import { scriptedWith } from '../support/scripted-sessions.ts';

// Turns that are submitted at the same moment to a warm session.

test('turns that two engines submit at the same moment end in order, each with its own receipt', async () => {
  await using home = new BenchHome();
  const { engine, parts } = await home.open();
  const { engine: other } = await home.open({ engine: { maxRunning: 0 } }); // it submits turns, and runs none
  const { id, owner } = await engine.ensure({ key: 'chat' });
  const watch = new TurnWatch(engine, id, 0);
  await watch.ended((await engine.submit(id, '/say Hello.')).turn.id);
  for (let i = 0; i < 10; i += 1) {
    const submitted = await Promise.all([
      other.submit(id, '/say From another one.'),
      engine.submit(id, '/say One.'),
      engine.submit(id, '/say Two.'),
    ]);
    for (const { turn } of submitted) await watch.ended(turn.id);
  }
  const turns = await engine.turns(id, { limit: 100 });
  const numbers = Array.from({ length: 1 + 10 * 3 }, (_, i) => i + 1);
  expect(turns.map(({ n, state }) => [n, state])).toEqual(numbers.map((n) => [n, 'completed']));
  const receipts = await parts.store.receipts(owner, id);
  expect(receipts.map(({ turn, rung }) => [turn, rung])).toEqual(numbers.map((n) => [n, n === 1 ? 'new' : 'live']));
  await watch.stop();
});

test('turns submitted at the same moment are accepted in the order in which they were submitted', async () => {
  await using home = new BenchHome();
  const { engine, id, watch, unblock } = await warmWithBlockedPosition(home);
  const submitted = ['One.', 'Two.', 'Three.'].map((text) => engine.submit(id, `/say ${text}`));
  await new Promise(setImmediate); // the fourth comes in a later turn of the event loop
  submitted.push(engine.submit(id, '/say Four.'));
  unblock();
  const turns = (await Promise.all(submitted)).map(({ turn }) => turn);
  expect(turns.map(({ n }) => n)).toEqual([2, 3, 4, 5]);
  for (const turn of turns) await watch.ended(turn.id);
  await watch.stop();
});

test('a turn that follows a cancelled one goes to the warm session, under its own number', async () => {
  await using home = new BenchHome();
  const { engine, parts } = await home.open();
  const { id, owner } = await engine.ensure({ key: 'chat' });
  const warm = keptWarm(parts.store);
  await engine.submit(id, '/say Hello.');
  await warm;
  // A turn that is cancelled in the commit that accepts it never begins, but takes a number.
  const cancelled = {
    id: 'cancelled',
    conversation: id,
    requestId: null,
    agent: null,
    defaultAgent: null,
    retryOf: null,
  };
  const prompt = [{ type: 'text', text: 'Never mind.' } as const];
  const warmAgain = keptWarm(parts.store);
  await Promise.all([
    parts.store.enqueue(owner, { ...cancelled, prompt, options: {} }),
    parts.store.requestCancel(owner, cancelled.id, 'test'),
  ]);
  await warmAgain;
  const watch = new TurnWatch(engine, id, (await engine.conversation(id)).lastSeq);
  const { turn } = await engine.submit(id, '/say Hello again.');
  await watch.ended(turn.id);
  expect((await engine.turn(turn.id)).n).toBe(3);
  const receipts = await parts.store.receipts(owner, id);
  expect(receipts.map(({ turn: n, rung }) => [n, rung])).toEqual([
    [1, 'new'],
    [3, 'live'],
  ]);
  await watch.stop();
});

test('a turn is accepted while the position of its session cannot be read yet', async () => {
  await using home = new BenchHome();
  const { engine, parts, id, watch, unblock } = await warmWithBlockedPosition(home);
  const { turn } = await engine.submit(id, '/say Hello again.');
  expect((await parts.store.findTurn('local', turn.id))?.sent).toBe(null);
  unblock();
  await watch.ended(turn.id);
  expect((await engine.answerOf(turn.id)).receipt).toMatchObject({ rung: 'live', proof: 'proved' });
  await watch.stop();
});

/** A warm session whose position cannot be read until `unblock` is called. */
async function warmWithBlockedPosition(home: BenchHome) {
  let readable = Promise.resolve();
  const { engine, parts } = await home.open({ agent: scriptedWithPositionAfter(() => readable) });
  const { id } = await engine.ensure({ key: 'chat' });
  const watch = new TurnWatch(engine, id, 0);
  const warm = keptWarm(parts.store);
  await engine.submit(id, '/say Hello.');
  await warm;
  const blocked = Promise.withResolvers<void>();
  readable = blocked.promise;
  return { engine, parts, id, watch, unblock: blocked.resolve };
}

/** The scripted agent, which waits for `readable` before it reads the position of a session. */
function scriptedWithPositionAfter(readable: () => Promise<void>): Agent {
  return scriptedWith((session) => {
    const position = session.position.bind(session);
    session.position = async () => {
      await readable();
      return position();
    };
  });
}
