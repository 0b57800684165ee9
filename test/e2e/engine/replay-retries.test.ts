// While the earlier prompts are replayed, the retries of the model's API are shown like those of the turn itself.
import { expect, test } from 'vitest';
import { modelRetryIn, retryUpdate } from '../../../src/core/turn/update.ts';
import type { Agent } from '../../../src/ports/agent.ts';
import { changedOpen, changedPrompt } from '../support/changed-agent.ts';
import { allEvents, expectSound, run } from '../support/conversations.ts';
import { Home } from '../support/home.ts';

const RETRY = { attempt: 4, of: 10, inMs: 35_000, status: 529, reason: 'overloaded' };

/** Reports a retry of its API before each answer. */
const retrying = (agent: Agent): Agent =>
  changedOpen(
    agent,
    (session) =>
      changedPrompt(session, async function* (request) {
        yield { type: 'update', update: retryUpdate(RETRY) };
        yield* session.prompt(request);
      }),
    () => true,
  );

test('a retry during a replay is an event of the turn, before its prompt is sent', async () => {
  await using home = new Home({ scripted: { memory: 'process' } });
  const engine = await home.engine({ agent: retrying });
  await run(engine, 'chat', 'The codeword is amber.');
  const options = { restore: { rebuild: true, rung: 'replay' } } as const;
  const { turn, reply } = await run(engine, 'chat', 'Which codewords have you seen?', options);
  expect(reply).toContain('amber');
  const events = (await allEvents(engine, 'chat')).filter(({ turnId }) => turnId === turn.id);
  const sent = events.findIndex(({ kind }) => kind === 'turn.sent');
  const retries = events
    .slice(0, sent)
    .flatMap((event) => (event.kind === 'turn.update' ? [modelRetryIn(event.payload.update)] : []));
  expect(retries).toMatchObject([RETRY]);
  await expectSound(engine, 'chat');
});

test('a warm-up, which has no turn, stores none', async () => {
  await using home = new Home({ scripted: { memory: 'process' } });
  const engine = await home.engine({ agent: retrying });
  await run(engine, 'chat', 'The codeword is amber.');
  const before = (await allEvents(engine, 'chat')).length;
  await engine.warm('chat', { restore: { rebuild: true, rung: 'replay' } });
  const kinds = (await allEvents(engine, 'chat')).slice(before).map(({ kind }) => kind);
  expect(kinds).toContain('restore.progress');
  expect(kinds).not.toContain('turn.update');
});
