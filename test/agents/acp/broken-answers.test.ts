// Answers that broke off, came twice, or never came.
import { describe, expect, test } from 'vitest';
import { chunkText } from '../../../src/core/turn/update.ts';
import { allEvents, ended, run } from '../../e2e/support/conversations.ts';
import { codexAcp, missing, ownAgent, quickClaudeAcp } from '../support/acp-agents.ts';
import { AcpHome } from '../support/acp-home.ts';
import { bash, execCommand } from './contract/contract.ts';

const WHOLE = Array.from({ length: 8 }, (_, i) => `chunk ${i + 1} `).join('');
// With pauses, so that the agent has passed on a part before the stream is cut.
const BROKEN = 'model: stream 8 300ms\nmodel: break 1 times';

describe.each([
  ['claude-agent-acp', quickClaudeAcp, bash, '@agentclientprotocol/claude-agent-acp'],
  ['codex-acp', codexAcp, execCommand, '@agentclientprotocol/codex-acp'],
] as const)('%s', (_, agent, command, name) => {
  test('a stream that the API cut is in the reply once, as the model finally said it', async (context) => {
    const why = missing(name);
    if (why !== null) return context.skip(why);
    await using home = await AcpHome.make({ agent });
    const tl = await home.open();
    const chat = tl.conversation('chat', { cwd: home.directory('work') });
    const { reply, turn } = await chat.ask(BROKEN);
    expect(home.model.requests.filter(({ side }) => !side).map(({ answer }) => answer?.broken)).toEqual([true, false]);
    expect(reply).toBe(WHOLE);
    // What was shown, and that it does not count, are both events. An agent that was busy until the end came has shown nothing.
    const updates = (await allEvents(tl.engine, 'chat')).flatMap((one) =>
      one.kind === 'turn.update' && one.turnId === turn.id ? [one.payload.update] : [],
    );
    const shown = updates.map((update) => chunkText(update) ?? '').join('');
    const retracted = updates.filter(({ sessionUpdate }) => sessionUpdate === '_throughline/retracted');
    expect(retracted).toHaveLength(shown.split('chunk 1 ').length - 2);
    // The second try need not begin like the first one.
    const other = await chat.ask(
      'model: stream 8 300ms 1 times\nmodel: say Another answer.\nmodel: break 1 times #other',
    );
    expect(other.reply).toBe('Another answer.');
    // What came before it in the turn stays.
    const later = await chat.ask(`model: say Before.\n${command('echo done')}\n${BROKEN} #later`);
    expect(later.reply).toBe(`Before.\n\n${WHOLE}`);
    // The session has what the record has: it is loaded and compared.
    await tl.close();
    const again = await (await home.open()).conversation('chat').ask('Which codewords have you seen?');
    expect(again.receipt).toMatchObject({ rung: 'resume', proof: 'consistent', dropped: 0 });
  });
});

/** A home whose agent sends these updates and says that the turn ended. */
const says = (...updates: object[]) => JSON.stringify({ updates });
const text = (words: string, messageId?: string) => ({
  sessionUpdate: 'agent_message_chunk',
  content: { type: 'text', text: words },
  ...(messageId === undefined ? {} : { messageId }),
});
const NO_ANSWER = { code: 'agent_failed', message: 'The agent ended the turn without an answer.' };

describe('a turn that its agent says has ended', () => {
  test.each([
    ['nothing', []],
    ['a thought alone', [{ ...text('hm'), sessionUpdate: 'agent_thought_chunk' }]],
    ['blanks', [text(' \n')]],
    [
      'news of itself',
      [
        { sessionUpdate: 'usage_update', used: 1, size: 2 },
        { sessionUpdate: 'session_info_update', title: 'x' },
      ],
    ],
  ])('has failed with %s for an answer', async (_, updates) => {
    await using home = await AcpHome.make({ agent: (model, root) => ownAgent(model, root, ['prompted']) });
    const { engine } = await home.open();
    await engine.ensure({ key: 'chat' });
    const { turn } = await engine.submit('chat', says(...updates));
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
  ])('has completed with %s', async (_, updates) => {
    await using home = await AcpHome.make({ agent: (model, root) => ownAgent(model, root, ['prompted']) });
    const { engine } = await home.open();
    await engine.ensure({ key: 'chat' });
    expect((await run(engine, 'chat', says(...updates))).turn.state).toBe('completed');
  });
});

describe('an agent that speaks as pi does', () => {
  const pi = (model: { url: string }, root: string) => ownAgent(model, root, ['prompted'], { agent: 'pi' });
  const retrying = (attempt: number) => text(`Retrying (attempt ${attempt}/3, waiting 2s)...`);
  const resumed = text('Retry finished, resuming.');

  test('its notices are recorded and are no part of the answer, and what it streamed before them does not count', async () => {
    await using home = await AcpHome.make({ agent: pi });
    const { engine } = await home.open();
    await engine.ensure({ key: 'chat' });
    const { reply } = await run(engine, 'chat', says(text('One, t'), retrying(1), text('One, two.'), resumed));
    expect(reply).toBe('One, two.');
    expect(JSON.stringify(await allEvents(engine, 'chat'))).toContain('Retrying (attempt 1/3');
  });

  test('with notices alone, it has not answered', async () => {
    await using home = await AcpHome.make({ agent: pi });
    const { engine } = await home.open();
    await engine.ensure({ key: 'chat' });
    const { turn } = await run(engine, 'chat', says(retrying(1), retrying(2), retrying(3), resumed));
    expect(turn).toMatchObject({ state: 'failed', failure: NO_ANSWER });
  });
});

test('a message that repeats the one before it, and goes on, replaces it', async () => {
  await using home = await AcpHome.make({ agent: (model, root) => ownAgent(model, root, ['prompted']) });
  const { engine } = await home.open();
  await engine.ensure({ key: 'chat' });
  expect((await run(engine, 'chat', says(text('One, t', 'a'), text('One, ', 'b'), text('two.', 'b')))).reply).toBe(
    'One, two.',
  );
});
