// Turns that their agent finished after Throughline was killed. The storage of the agent shows the end; here it is simulated.
import { expect, test } from 'vitest';
import { tokensOf } from '../../../src/core/limits/budget.ts';
import type { PublicTurn } from '../../../src/core/public/turn.ts';
import type { Usage } from '../../../src/core/turn/usage.ts';
import type { Agent, AgentEvent, Tail } from '../../../src/ports/agent.ts';
import type { Engine, SubmitOptions } from '../../../src/ports/engine.ts';
import { changedOpen, changedPrompt } from '../support/changed-agent.ts';
import { allEvents, expectSound, run, until } from '../support/conversations.ts';
import { Home } from '../support/home.ts';

const USAGE = { inputTokens: 7, outputTokens: 3, modelCalls: 2 };
const END = { ended: true, usage: USAGE } as const;
const UPDATES: Tail['updates'] = [
  { sessionUpdate: 'tool_call', toolCallId: 't', title: 'write', status: 'completed' },
  { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: 'begun, and ended' } },
];

/** Changes what the storage of the agent shows of the last prompt. */
function withTail(tail: (real: Tail) => Tail | null): (agent: Agent) => Agent {
  return (agent) => ({
    ...agent,
    async tail(...args) {
      const real = await agent.tail(...args);
      return real && tail(real);
    },
  });
}

const finished = withTail((real) => ({ ...real, updates: UPDATES, ...END }));

const UPDATES_OF_TURN = `SELECT e.no FROM events e JOIN turns t ON t.no = e.turn WHERE t.id = ? AND e.kind = 'turn.update'`;

/** Runs a turn, which first ends the turn that was left running. */
async function runNextTurn(engine: Engine, turn: PublicTurn, prompt = 'Go on.') {
  const next = await run(engine, 'chat', prompt);
  return { turn: await engine.turn(turn.id), next };
}

/** Makes a conversation whose process is killed in its second turn, and returns that turn. */
async function killInSecondTurn(home: Home, options: SubmitOptions = {}, first = 'The codeword is amber.') {
  const host = await home.host();
  await host.engine.ensure({ key: 'chat' });
  await host.calls.ask('chat', first);
  const { turn } = await host.engine.submit('chat', '/say begun\n/hang', options);
  await until('the agent has said something', () => home.query(UPDATES_OF_TURN, turn.id).length > 0);
  await host.kill();
  return turn;
}

test('a turn that its agent finished after the kill is completed, and marked as recovered', async () => {
  await using home = new Home();
  const turn = await killInSecondTurn(home);
  const engine = await home.engine({ agent: finished }, { claims: 'own' });
  const { turn: ended, next } = await runNextTurn(engine, turn);
  expect(ended).toMatchObject({ state: 'completed', failure: null, recovered: true, usage: USAGE });
  expect((await engine.answerOf(turn.id)).reply).toBe('begun, and ended');
  const ends = (await allEvents(engine, 'chat')).filter(({ kind }) => kind === 'turn.ended');
  expect(ends[1]?.payload).toMatchObject({ n: 2, outcome: 'completed', recovered: true });
  expect((await engine.show('chat')).turns.map(({ recovered }) => recovered)).toEqual([undefined, true, undefined]);
  // The session is not told of it again, and copies keep the mark.
  expect(next.receipt).toMatchObject({ rung: 'resume', delivered: 0, unsettled: false, carried: 2 });
  expect(await engine.sessions('chat')).toMatchObject([{ watermark: 3 }]);
  await engine.fork('chat', { key: 'copy', turn: 2 });
  await engine.import(await engine.export('copy'), { key: 'import' });
  for (const key of ['copy', 'import']) {
    expect((await engine.turns(key)).map(({ recovered }) => recovered)).toEqual([undefined, true]);
  }
  await expectSound(engine, 'chat');
});

test('turns that the agent condensed in a recovered turn are in its receipt', async () => {
  await using home = new Home();
  const turn = await killInSecondTurn(home);
  const condensing = { sessionUpdate: 'compaction_update', status: 'completed', compactionId: 'c' } as const;
  const condensed = withTail((real) => ({ ...real, updates: [condensing, ...UPDATES], ...END }));
  const engine = await home.engine({ agent: condensed }, { claims: 'own' });
  const { next } = await runNextTurn(engine, turn);
  expect((await engine.receipts('chat'))[1]).toMatchObject({ turn: 2, carried: 0, condensed: 1 });
  expect(next.receipt).toMatchObject({ rung: 'resume', carried: 1, condensed: 1 });
});

test('without a position the turn is completed, but its session does not count as having it', async () => {
  await using home = new Home();
  const turn = await killInSecondTurn(home);
  const withoutPosition = withTail((real) => ({ ...real, updates: UPDATES, ...END, position: null }));
  const engine = await home.engine({ agent: withoutPosition }, { claims: 'own' });
  const { turn: ended, next } = await runNextTurn(engine, turn);
  expect(ended).toMatchObject({ state: 'completed', recovered: true });
  expect(next.receipt).toMatchObject({ rung: 'transcript', delivered: 2 });
});

test('a storage that does not show the end leaves the turn interrupted', async () => {
  await using home = new Home();
  const turn = await killInSecondTurn(home);
  const engine = await home.engine({ agent: withTail((real) => ({ ...real, updates: UPDATES })) }, { claims: 'own' });
  const { turn: ended, next } = await runNextTurn(engine, turn);
  expect(ended).toMatchObject({ state: 'interrupted', failure: { code: 'interrupted' } });
  expect(ended).not.toHaveProperty('recovered');
  expect(next.receipt).toMatchObject({ rung: 'resume', delivered: 1, unsettled: true });
});

test('a session that was started without the history is closed, also when its turn is recovered', async () => {
  await using home = new Home();
  const turn = await killInSecondTurn(home, { restore: { policy: 'off' } });
  const engine = await home.engine({ agent: finished }, { claims: 'own' });
  const { turn: ended, next } = await runNextTurn(engine, turn);
  expect(ended).toMatchObject({ state: 'completed', recovered: true });
  expect(next.receipt?.sessionId).not.toBe(ended.sessionId);
  const left = (await engine.sessions('chat')).find(({ id }) => id === ended.sessionId);
  expect(left).toMatchObject({ state: 'closed' });
});

const FIVE_DOLLARS = { costMicros: 5_000_000, tokens: null };

test.each([
  ['that its agent finished after a kill', finished, 'completed', 10],
  ['that a kill interrupted', withTail((real) => ({ ...real, updates: UPDATES, usage: USAGE })), 'interrupted', 10],
  ['that a kill interrupted, of which nothing can be read', withTail(() => null), 'interrupted', 0],
] as const)('a turn %s has an unknown cost, which refuses nothing', async (_, change, state, tokens) => {
  await using home = new Home();
  const turn = await killInSecondTurn(home, {}, '/usage 1 1 100000');
  const spending = { conversationPerDay: FIVE_DOLLARS, ownerPerDay: FIVE_DOLLARS, owners: new Map() };
  const engine = await home.engine({ agent: change, settings: { spending } }, { claims: 'own' });
  const { turn: ended, next } = await runNextTurn(engine, turn, '/usage 4 2 700000');
  expect(next.turn).toMatchObject({ state: 'completed', usage: { costMicros: 700_000 } });
  expect(ended).toMatchObject({ state, usage: { costMicros: 0, unknownCosts: 1 } });
  expect(tokensOf(ended.usage)).toBe(tokens);
  expect(next.turn.usage).not.toHaveProperty('unknownCosts');
  const { usage } = await engine.summary('chat');
  expect(usage).toMatchObject({ costMicros: 800_000, unknownCosts: 1 });
  expect((await engine.usage())[0]?.usage).toMatchObject({ costMicros: 800_000, unknownCosts: 1 });
  expect((await engine.conversation('chat')).usage).toEqual(usage);
  // Copies keep it.
  await engine.fork('chat', { key: 'copy' });
  await engine.import(await engine.export('copy'), { key: 'import' });
  for (const key of ['copy', 'import']) expect((await engine.summary(key)).usage).toEqual(usage);
});

test.each<[string, readonly AgentEvent['type'][], Partial<Usage>]>([
  ['reported its usage', [], { inputTokens: 30, modelCalls: 1 }],
  ['did not report its usage, which its storage shows', ['usage'], USAGE],
])(
  'an agent whose process ended after its answer was stored, and %s, has completed the turn',
  async (_, lost, usage) => {
    await using home = new Home();
    const dies = (agent: Agent) =>
      changedOpen(
        finished(agent),
        (session) =>
          changedPrompt(session, async function* (this: typeof session, request) {
            for await (const one of session.prompt(request) as AsyncIterable<AgentEvent>) {
              if (one.type !== 'ended' && !lost.includes(one.type)) yield one;
            }
            await session.kill();
            yield { type: 'ended', outcome: { kind: 'lost', message: 'its process ended' } };
          }),
        () => true,
      );
    const engine = await home.engine({ agent: dies });
    await engine.ensure({ key: 'chat' });
    const { turn, reply } = await run(engine, 'chat', '/say begun');
    expect(turn).toMatchObject({ state: 'completed', recovered: true, failure: null, usage });
    expect(reply).toBe('begun, and ended');
    expect(await engine.sessions('chat')).toMatchObject([{ state: 'dormant', watermark: 1 }]);
  },
);
