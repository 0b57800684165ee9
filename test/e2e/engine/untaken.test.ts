import { expect, test } from 'vitest';
import { BenchHome } from '../../../bench/support/bench-home.ts';
import { promptText } from '../../../src/core/turn/content.ts';
import type { Agent } from '../../../src/ports/agent.ts';
import type { Engine } from '../../../src/ports/engine.ts';
import { ended } from '../support/conversations.ts';
import { scriptedWith } from '../support/scripted-sessions.ts';

// An agent may reject a prompt that was sent to it, and report that it has taken nothing of it.

test('a rejected prompt is not part of the history, and its session continues unchanged', async () => {
  await using home = new BenchHome();
  const { engine, id } = await openWithOneTurn(home);
  const before = await engine.sessions(id);
  const refused = await ask(engine, id, 'Not this.');
  expect(refused).toMatchObject({
    state: 'failed',
    sent: null,
    failure: { message: 'The agent takes no such thing.' },
  });
  expect(await engine.conversation(id)).toMatchObject({ head: 1, historyCount: 1 });
  expect((await ask(engine, id, '/say Still here.')).state).toBe('completed');
  const { receipt } = await engine.answerOf((await engine.turns(id)).at(-1)?.id ?? '');
  expect(receipt).toMatchObject({ turn: 3, rung: 'live', carried: 1, delivered: 0, unsettled: false, proof: 'proved' });
  expect((await engine.sessions(id)).map((session) => session.id)).toEqual(before.map((session) => session.id));
});

test('a conversation whose first prompt was rejected has no history', async () => {
  await using home = new BenchHome();
  const { engine } = await home.open({ agent: rejecting() });
  const { id } = await engine.ensure({ key: 'chat' });
  expect(await ask(engine, id, 'Not this.')).toMatchObject({ state: 'failed', sent: null });
  expect(await ask(engine, id, '/say Hello.')).toMatchObject({ state: 'completed' });
  expect(await engine.conversation(id)).toMatchObject({ head: 2, historyCount: 1 });
});

test('a session that was rebuilt for a rejected prompt is closed, so that no session is told the history twice', async () => {
  await using home = new BenchHome();
  const { engine, id } = await openWithOneTurn(home);
  await engine.close();
  const { engine: next } = await home.open({ agent: rejecting() });
  const rebuilt = await ask(next, id, 'Not this.', { restore: { rebuild: true, rung: 'transcript' } });
  expect(rebuilt).toMatchObject({ state: 'failed', sent: null });
  expect((await next.sessions(id))[0]).toMatchObject({ state: 'closed' });
  const again = await ask(next, id, '/say Hello.');
  expect((await next.answerOf(again.id)).receipt).toMatchObject({ carried: 1, unsettled: false });
});

async function openWithOneTurn(home: BenchHome) {
  const { engine } = await home.open({ agent: rejecting() });
  const { id } = await engine.ensure({ key: 'chat' });
  await ask(engine, id, '/say Hello.');
  return { engine, id };
}

async function ask(engine: Engine, id: string, prompt: string, options = {}) {
  const { turn } = await engine.submit(id, prompt, options);
  return ended(engine, turn);
}

/** The scripted agent, which rejects every prompt with the text `Not this.` */
function rejecting(): Agent {
  return scriptedWith((session) => {
    const prompt = session.prompt.bind(session);
    session.prompt = async function* (given) {
      if (!promptText(given.content).includes('Not this.')) return yield* prompt(given);
      const message = 'The agent takes no such thing.';
      yield { type: 'ended', outcome: { kind: 'failed', code: 'agent_failed', message, again: false, unsent: true } };
    };
  });
}
