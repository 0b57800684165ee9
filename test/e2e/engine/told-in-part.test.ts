// A history that is larger than the budget: what a session is told of it, and what receipts say about the rest.
import { expect, test } from 'vitest';
import { type ContentBlock, promptText } from '../../../src/core/turn/content.ts';
import type { Agent, AgentEvent, AgentSession, PromptRequest } from '../../../src/ports/agent.ts';
import { codewordsIn, run, WHICH_CODEWORDS } from '../support/conversations.ts';
import { Home } from '../support/home.ts';

const FORGETFUL = { memory: 'process' } as const;
const NOTHING = { outputs: 0, images: 0, files: 0 };
const IMAGE: ContentBlock = { type: 'image', data: 'aGk=', mimeType: 'image/png' };
/** A long prompt with one codeword at its beginning and another at its end. */
const large = (first: string, size: number, last: string) =>
  `The codeword is ${first}. ${'x'.repeat(size)} The codeword is ${last}.`;

test.each([20_000, 8_000_000])(
  'a turn of %i bytes does not block its conversation after the session is lost, nor for another agent',
  async (size) => {
    await using home = new Home({ a: { ...FORGETFUL, window: 8_000 }, b: { window: 8_000 } });
    const first = await home.open();
    const { engine: before } = first;
    await before.ensure({ key: 'chat', agent: 'a' });
    await run(before, 'chat', 'The codeword is amber.');
    await run(before, 'chat', large('birch', size, 'cedar'));
    await first.close();
    const { engine } = await home.open();
    const again = await run(engine, 'chat', WHICH_CODEWORDS);
    expect(again.turn.state).toBe('completed');
    expect(again.receipt).toMatchObject({ rung: 'transcript', carried: 2, dropped: 0, shortened: 1, leftOut: NOTHING });
    expect(again.receipt?.deliveredTokens).toBeLessThanOrEqual(4_000);
    expect(codewordsIn(again.reply)).toEqual(['amber', 'birch', 'cedar']);
    const other = await run(engine, 'chat', WHICH_CODEWORDS, { agent: 'b' });
    expect(other.receipt).toMatchObject({ rung: 'transcript', carried: 3, dropped: 0, shortened: 1 });
    expect(codewordsIn(other.reply)).toEqual(['amber', 'birch', 'cedar']);
  },
);

test('every later receipt of a session counts the turns that it was told in part', async () => {
  await using home = new Home({ a: {}, b: { window: 8_000 } });
  const before = await home.open();
  await before.engine.ensure({ key: 'chat', agent: 'a' });
  await run(before.engine, 'chat', large('amber', 90_000, 'birch'));
  expect((await run(before.engine, 'chat', 'Go on.', { agent: 'b' })).receipt).toMatchObject({ shortened: 1 });
  expect((await run(before.engine, 'chat', 'Go on.')).receipt).toMatchObject({ rung: 'live', shortened: 1 });
  // Its own turns were told in full.
  expect((await run(before.engine, 'chat', 'Go on.', { agent: 'a' })).receipt).toMatchObject({ shortened: 0 });
  await before.close();
  const { engine } = await home.open();
  const { receipt } = await run(engine, 'chat', WHICH_CODEWORDS, { agent: 'b' });
  expect(receipt).toMatchObject({ rung: 'resume', carried: 4, dropped: 0, shortened: 1 });
});

test('a prompt that is refused as too long does not keep the next one from being answered', async () => {
  await using home = new Home({ a: { maxPromptTokens: 1_500, window: 4_000 } });
  const { engine } = await home.open();
  await engine.ensure({ key: 'chat', agent: 'a' });
  await run(engine, 'chat', 'The codeword is amber.');
  const refused = await run(engine, 'chat', large('birch', 90_000, 'cedar'));
  expect(refused.turn).toMatchObject({ state: 'failed', failure: { code: 'too_long' } });
  const next = await run(engine, 'chat', WHICH_CODEWORDS);
  expect(next.turn.state).toBe('completed');
  expect(codewordsIn(next.reply)).toEqual(['amber', 'birch', 'cedar']);
  expect(next.receipt).toMatchObject({ carried: 2, dropped: 0, shortened: 1 });
});

test('history that was shortened for one turn only is told in full for the next turn', async () => {
  await using home = new Home({ a: FORGETFUL });
  const first = await home.open();
  await first.engine.ensure({ key: 'chat', agent: 'a' });
  await run(first.engine, 'chat', large('amber', 9_000, 'birch'));
  await first.close();
  const { engine } = await home.open();
  const short = await run(engine, 'chat', WHICH_CODEWORDS, { restore: { budgetTokens: 1_000 } });
  expect(short.receipt).toMatchObject({ rung: 'transcript', shortened: 1 });
  expect((await run(engine, 'chat', WHICH_CODEWORDS)).receipt).toMatchObject({
    rung: 'transcript',
    carried: 2,
    shortened: 0,
  });
});

test('history that was shortened for one turn only is told in full for the next turn, also by the rung "rehydrate"', async () => {
  await using home = new Home({ a: { ids: 'assigned' } });
  const agent = (one: Agent) => withPrompting(rehydrating(one), (request, prompt) => prompt(request));
  const first = await home.engine({ agent });
  await first.ensure({ key: 'chat', agent: 'a' });
  await run(first, 'chat', large('amber', 9_000, 'birch'));
  const restore = { rebuild: true, rung: 'rehydrate', budgetTokens: 1_000 } as const;
  const short = await run(first, 'chat', 'Go on.', { restore });
  expect(short.receipt).toMatchObject({ rung: 'rehydrate', shortened: 1 });
  expect((await first.sessions('chat'))[0]).toMatchObject({ state: 'closed' });
  expect((await run(first, 'chat', 'Go on.')).receipt).toMatchObject({ rung: 'rehydrate', carried: 2, shortened: 0 });
});

test('a replay shortens a prompt that does not fit, and reopens the session with it', async () => {
  await using home = new Home({ a: { window: 8_000, toolsInPlace: false } });
  const first = await home.open();
  await first.engine.ensure({ key: 'chat', agent: 'a' });
  await run(first.engine, 'chat', large('amber', 90_000, 'birch'));
  await first.close();
  const { engine } = await home.open();
  const { reply, receipt } = await run(engine, 'chat', WHICH_CODEWORDS, { restore: { rebuild: true, rung: 'replay' } });
  expect(receipt).toMatchObject({ rung: 'replay', carried: 1, shortened: 1 });
  expect(codewordsIn(reply)).toEqual(['amber', 'birch']);
});

test('the output of tools is told to another agent, and output that is left out is counted', async () => {
  await using home = new Home({ a: {}, b: { window: 8_000 } });
  const engine = await home.engine({ agent: (agent) => withPrompting(agent, printing) });
  await engine.ensure({ key: 'chat', agent: 'a' });
  await run(engine, 'chat', 'print 300');
  await run(engine, 'chat', 'Go on.', { agent: 'b' });
  const { reply } = await run(engine, 'chat', 'Repeat the first prompt', { agent: 'b' });
  expect(reply).toContain(`output of this tool:\n  ${'o'.repeat(300)}\n`);
  await run(engine, 'chat', 'print 90000', { agent: 'a' });
  const { receipt } = await run(engine, 'chat', 'Go on.', { agent: 'b' });
  expect(receipt).toMatchObject({ dropped: 0, shortened: 0, leftOut: { outputs: 1 } });
});

type Prompting = (request: PromptRequest, prompt: AgentSession['prompt']) => AsyncIterable<AgentEvent>;

/** The agent, with another `prompt` in its sessions. */
function withPrompting(agent: Agent, prompting: Prompting): Agent {
  return {
    ...agent,
    open: async (request) => {
      const opened = await agent.open(request);
      if (!opened.ok) return opened;
      const prompt = opened.session.prompt.bind(opened.session);
      opened.session.prompt = (given) => prompting(given, prompt);
      return opened;
    },
  };
}

/** The agent, which opens a session under the id of a transcript as if it had read the transcript. */
function rehydrating(agent: Agent): Agent {
  return {
    ...agent,
    traits: async (sandbox) => ({ ...(await agent.traits(sandbox)), rehydrate: true }),
    open: (request) => {
      const { how } = request;
      return agent.open(how.kind === 'rehydrate' ? { ...request, how: { kind: 'new', id: how.id } } : request);
    },
  };
}

/** Runs a tool with as much output as the prompt `print N` says. */
const printing: Prompting = async function* (request, prompt) {
  const [, size] = /^print (\d+)$/m.exec(promptText(request.content.slice(-1))) ?? [];
  if (size !== undefined) {
    const call = {
      toolCallId: request.id,
      title: 'look',
      status: 'completed',
      rawOutput: 'o'.repeat(Number(size)),
    } as const;
    yield { type: 'update', update: { sessionUpdate: 'tool_call', ...call } };
  }
  yield* prompt(request);
};

/** Fails if the prompt contains an image. */
const blind: Prompting = async function* (request, prompt) {
  if (!request.content.some(({ type }) => type === 'image')) return yield* prompt(request);
  const message = 'could not process image';
  yield { type: 'ended', outcome: { kind: 'failed', code: 'agent_failed', message, again: false } };
};

test('images of earlier turns are sent as images, after the record that names them', async () => {
  await using home = new Home({ a: {}, b: {} });
  const sent: PromptRequest[] = [];
  const recording: Prompting = (request, prompt) => {
    sent.push(request);
    return prompt(request);
  };
  const engine = await home.engine({ agent: (agent) => withPrompting(agent, recording) });
  await engine.ensure({ key: 'chat', agent: 'a' });
  const { turn } = await engine.submit('chat', [{ type: 'text', text: 'Look:' }, IMAGE]);
  await run(engine, 'chat', 'Go on.');
  const { receipt } = await run(engine, 'chat', 'And you?', { agent: 'b' });
  expect(turn.n).toBe(1);
  expect(receipt).toMatchObject({ carried: 2, dropped: 0, leftOut: NOTHING });
  const [record, image, prompt] = sent.at(-1)?.content ?? [];
  expect(record).toMatchObject({ text: expect.stringContaining('  Look:\n[turn 1] image 1: image/png\n') });
  expect(image).toEqual(IMAGE);
  expect(prompt).toEqual({ type: 'text', text: 'And you?' });
});

test('a prompt that fails with images of earlier turns is sent once more without them', async () => {
  await using home = new Home({ a: {}, b: {} });
  const engine = await home.engine({ agent: (agent) => (agent.name === 'b' ? withPrompting(agent, blind) : agent) });
  await engine.ensure({ key: 'chat', agent: 'a' });
  await engine.submit('chat', [{ type: 'text', text: 'The codeword is amber.' }, IMAGE]);
  const { turn, reply, receipt } = await run(engine, 'chat', WHICH_CODEWORDS, { agent: 'b' });
  expect(turn.state).toBe('completed');
  expect(codewordsIn(reply)).toEqual(['amber']);
  expect(receipt).toMatchObject({ carried: 1, leftOut: { images: 1 } });
  expect(receipt?.tried).toMatchObject([{ rung: 'transcript', failure: 'failed with images of earlier turns' }]);
});
