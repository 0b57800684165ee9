// What an agent sends is refused when it is nested too deep: code that goes through it would fail. Nothing more is taken after it.
import { expect, test } from 'vitest';
import type { Update } from '../../../src/core/turn/update.ts';
import type { Agent, AgentEvent } from '../../../src/ports/agent.ts';
import { changedOpen, changedPrompt } from '../support/changed-agent.ts';
import { allEvents, expectSound, run, until, WHICH_CODEWORDS } from '../support/conversations.ts';
import { Home } from '../support/home.ts';

const nested = (levels: number) => `${'['.repeat(levels)}${']'.repeat(levels)}`;
const tool = (field: string, levels: number) =>
  `/update {"sessionUpdate":"tool_call","toolCallId":"t","title":"dig","${field}":${nested(levels)}}`;
const FAILURE = {
  code: 'agent_died',
  message: 'the agent was ended: it sent something that is nested deeper than 200 levels.',
};
const UPDATES = `SELECT e.no FROM events e JOIN turns t ON t.no = e.turn WHERE t.id = ? AND e.kind = 'turn.update'`;
const DEEP: unknown = JSON.parse(nested(3_500));

/** Asks for a permission before anything else. */
const asking = (agent: Agent): Agent => {
  const question: AgentEvent = {
    ...{ type: 'permission', id: 'q', title: 'dig', toolCall: { rawInput: DEEP } },
    options: [{ optionId: 'allow', name: 'Allow', kind: 'allow_once' }],
  };
  return changedOpen(
    agent,
    (session) =>
      changedPrompt(session, async function* (request) {
        yield question;
        yield* session.prompt(request);
      }),
    () => true,
  );
};

/** Its storage shows that it finished the turn. */
const storing = (agent: Agent): Agent => {
  const says = (text: string): Update => ({ sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } });
  const deep: Update = { sessionUpdate: 'tool_call', toolCallId: 't', title: 'dig', rawOutput: DEEP };
  return {
    ...agent,
    async tail(...args) {
      const real = await agent.tail(...args);
      return real && { ...real, updates: [says('begun, and more'), deep, says('After.')], ended: true };
    },
  };
};

test.each([
  ['rawInput', 3_500],
  ['rawOutput', 250],
])('a %s of %d levels ends the turn, and nothing after it is taken', async (field, levels) => {
  await using home = new Home();
  const { engine } = await home.open();
  await run(engine, 'chat', 'The codeword is amber.');
  const { turn, reply } = await run(engine, 'chat', `/say Before.\n${tool(field, levels)}\n/say After.`);
  expect(turn).toMatchObject({ state: 'interrupted', attempt: 1, failure: FAILURE });
  expect(reply).toBe('Before.');
  const updates = (await allEvents(engine, 'chat')).filter(({ kind }) => kind === 'turn.update');
  expect(JSON.stringify(updates)).not.toContain('After.');
  // Its session is opened again, and the conversation goes on.
  expect((await run(engine, 'chat', WHICH_CODEWORDS)).reply).toContain('amber');
  await expectSound(engine, 'chat');
});

test('a question about a tool call with such an input ends the turn, too', async () => {
  await using home = new Home();
  const engine = await home.engine({ agent: asking });
  const { turn } = await run(engine, 'chat', '/hang');
  expect(turn).toMatchObject({ state: 'interrupted', failure: FAILURE });
  expect(await engine.pending()).toEqual([]);
});

test('what an agent has stored of a turn is read up to such an update, and does not count as the end of the turn', async () => {
  await using home = new Home();
  const host = await home.host();
  await host.engine.ensure({ key: 'chat' });
  const { turn } = await host.engine.submit('chat', '/say begun\n/hang');
  await until('the agent has said something', () => home.query(UPDATES, turn.id).length > 0);
  await host.kill();
  const engine = await home.engine({ agent: storing }, { claims: 'own' });
  await run(engine, 'chat', 'Go on.');
  expect(await engine.turn(turn.id)).toMatchObject({ state: 'interrupted' });
  expect((await engine.answerOf(turn.id)).reply).toBe('begun, and more');
});

test('a replay in which an agent sends such an update fails with the reason', async () => {
  await using home = new Home({ scripted: { memory: 'process' } });
  const { engine } = await home.open();
  await run(engine, 'chat', 'The codeword is amber.');
  await engine.close();
  const again = await home.engine({ agent: asking });
  const options = { restore: { rebuild: true, rung: 'replay' } } as const;
  const { turn } = await run(again, 'chat', 'Go on.', options);
  expect(turn.failure?.message).toContain('nested deeper than 200 levels');
});
