// Answers that were cut off, repeated or missing.
import { describe, expect, test } from 'vitest';
import { chunkText } from '../../../src/core/turn/update.ts';
import { allEvents, ended, run } from '../../e2e/support/conversations.ts';
import { bash, codexAcp, execCommand, quickClaudeAcp, smallAgent, whyNotInstalled } from '../support/acp-agents.ts';
import { AcpHome } from '../support/acp-home.ts';

const COMPLETE = Array.from({ length: 8 }, (_, i) => `chunk ${i + 1} `).join('');
// With pauses, so that the agent has sent us a part of the answer before the stream is cut.
const CUT = 'model: stream 8 300ms\nmodel: break 1 times';

describe.each([
  ['claude-agent-acp', quickClaudeAcp, bash, '@agentclientprotocol/claude-agent-acp'],
  ['codex-acp', codexAcp, execCommand, '@agentclientprotocol/codex-acp'],
] as const)('%s', (_, agent, command, name) => {
  test('when the API cuts a stream, the reply is only the answer of the second attempt', async (context) => {
    const why = whyNotInstalled(name);
    if (why !== null) return context.skip(why);
    await using home = await AcpHome.make({ agent });
    const tl = await home.open();
    const chat = tl.conversation('chat', { cwd: home.directory('work') });
    const { reply, turn } = await chat.ask(CUT);
    expect(home.model.requests.filter(({ side }) => !side).map(({ answer }) => answer?.broken)).toEqual([true, false]);
    expect(reply).toBe(COMPLETE);
    // The cut text and its retraction are both events. A slow agent may have sent nothing of the cut text, and then retracts nothing.
    const updates = (await allEvents(tl.engine, 'chat')).flatMap((one) =>
      one.kind === 'turn.update' && one.turnId === turn.id ? [one.payload.update] : [],
    );
    const shown = updates.map((update) => chunkText(update) ?? '').join('');
    const retracted = updates.filter(({ sessionUpdate }) => sessionUpdate === '_throughline/retracted');
    expect(retracted).toHaveLength(shown.split('chunk 1 ').length - 2);
    // The second attempt may begin differently from the first.
    const other = await chat.ask(
      'model: stream 8 300ms 1 times\nmodel: say Another answer.\nmodel: break 1 times #other',
    );
    expect(other.reply).toBe('Another answer.');
    // Text before the cut stream stays in the reply.
    const later = await chat.ask(`model: say Before.\n${command('echo done')}\n${CUT} #later`);
    expect(later.reply).toBe(`Before.\n\n${COMPLETE}`);
    // The session agrees with our record: a load compares the two.
    await tl.close();
    const again = await (await home.open()).conversation('chat').ask('Which codewords have you seen?');
    expect(again.receipt).toMatchObject({ rung: 'resume', proof: 'consistent', dropped: 0 });
  });
});

/** A prompt for the agent `sends-updates`: it sends these updates and then ends the turn. */
const promptFor = (...updates: object[]) => JSON.stringify({ updates });
const text = (value: string, messageId?: string) => ({
  sessionUpdate: 'agent_message_chunk',
  content: { type: 'text', text: value },
  ...(messageId === undefined ? {} : { messageId }),
});
const NO_ANSWER = { code: 'agent_failed', message: 'The agent ended the turn without an answer.' };

describe('a turn that the agent has ended', () => {
  test.each([
    ['no update', []],
    ['only a thought', [{ ...text('hm'), sessionUpdate: 'agent_thought_chunk' }]],
    ['only white space', [text(' \n')]],
    [
      'only its usage and a title',
      [
        { sessionUpdate: 'usage_update', used: 1, size: 2 },
        { sessionUpdate: 'session_info_update', title: 'x' },
      ],
    ],
  ])('is failed if it has %s', async (_, updates) => {
    await using home = await AcpHome.make({ agent: (model, root) => smallAgent(model, root, ['sends-updates']) });
    const { engine } = await home.open();
    await engine.ensure({ key: 'chat' });
    const { turn } = await engine.submit('chat', promptFor(...updates));
    expect(await ended(engine, turn)).toMatchObject({ state: 'failed', attempt: 1, failure: NO_ANSWER });
  });

  test.each([
    ['a text', [text('Done.')]],
    ['a tool', [{ sessionUpdate: 'tool_call', toolCallId: 't', title: 'Look', status: 'completed' }]],
    [
      'an image',
      [{ sessionUpdate: 'agent_message_chunk', content: { type: 'image', data: '', mimeType: 'image/png' } }],
    ],
    ['a plan', [{ sessionUpdate: 'plan', entries: [] }]],
  ])('is completed if it has %s', async (_, updates) => {
    await using home = await AcpHome.make({ agent: (model, root) => smallAgent(model, root, ['sends-updates']) });
    const { engine } = await home.open();
    await engine.ensure({ key: 'chat' });
    expect((await run(engine, 'chat', promptFor(...updates))).turn.state).toBe('completed');
  });
});

describe('an agent that sends notices about retries as pi does', () => {
  const pi = (model: { url: string }, root: string) => smallAgent(model, root, ['sends-updates'], { agent: 'pi' });
  const retrying = (attempt: number) => text(`Retrying (attempt ${attempt}/3, waiting 2s)...`);
  const resumed = text('Retry finished, resuming.');

  test('the notices are recorded; they and the text before them are not part of the answer', async () => {
    await using home = await AcpHome.make({ agent: pi });
    const { engine } = await home.open();
    await engine.ensure({ key: 'chat' });
    const { reply } = await run(engine, 'chat', promptFor(text('One, t'), retrying(1), text('One, two.'), resumed));
    expect(reply).toBe('One, two.');
    expect(JSON.stringify(await allEvents(engine, 'chat'))).toContain('Retrying (attempt 1/3');
  });

  test('a turn with only notices is failed', async () => {
    await using home = await AcpHome.make({ agent: pi });
    const { engine } = await home.open();
    await engine.ensure({ key: 'chat' });
    const { turn } = await run(engine, 'chat', promptFor(retrying(1), retrying(2), retrying(3), resumed));
    expect(turn).toMatchObject({ state: 'failed', failure: NO_ANSWER });
  });
});

test('a message that repeats the beginning of the one before it replaces that one', async () => {
  await using home = await AcpHome.make({ agent: (model, root) => smallAgent(model, root, ['sends-updates']) });
  const { engine } = await home.open();
  await engine.ensure({ key: 'chat' });
  expect((await run(engine, 'chat', promptFor(text('One, t', 'a'), text('One, ', 'b'), text('two.', 'b')))).reply).toBe(
    'One, two.',
  );
});
