// Agents that violate the protocol: whatever they send is recorded and breaks nothing.
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { PublicTurn } from '../../../src/core/public/turn.ts';
import { until } from '../../contracts/agent-sandbox.ts';
import { isAlive } from '../../contracts/liveness.ts';
import { allEvents, ended, event } from '../../e2e/support/conversations.ts';
import { sentTo } from '../../e2e/support/stored.ts';
import { ownAgent } from '../support/acp-agents.ts';
import { AcpHome } from '../support/acp-home.ts';
import { FIRST, SECOND } from '../support/agent-home.ts';

const hostile = () => AcpHome.make({ agent: (model, root) => ownAgent(model, root, ['hostile']) });

async function updatesOf(tl: Awaited<ReturnType<AcpHome['open']>>): Promise<unknown[]> {
  const events = (await allEvents(tl.engine, 'chat')).filter(({ kind }) => kind === 'turn.update');
  return events.map(({ payload }) => (payload as { update: unknown }).update);
}

describe('an agent that does not keep to the protocol', () => {
  test('fields of unexpected types are recorded as they came and break nothing', async () => {
    await using home = await hostile();
    const tl = await home.open();
    const { reply, turn } = await tl.conversation('chat').ask('wrong types');
    expect(turn.state).toBe('completed');
    expect(reply).toBe('Well.');
    const updates = await updatesOf(tl);
    expect(updates).toHaveLength(10);
    expect(updates[0]).toMatchObject({ title: {}, locations: [{ path: 5 }] });
    expect(updates).toContainEqual({
      sessionUpdate: '_acp/notification',
      method: 'session/update',
      params: { sessionId: 'one', update: null },
    });
    // The turn is delivered later like any other.
    await tl.close();
    const next = await (await home.open()).conversation('chat').ask('Go on.');
    expect(next.receipt).toMatchObject({ rung: 'transcript', carried: 1 });
  });

  test('chunks of text are joined only when that loses nothing else', async () => {
    await using home = await hostile();
    const tl = await home.open();
    expect((await tl.conversation('chat').ask('more fields')).reply).toBe('abcdefWell.');
    const fields = new Set(
      (await updatesOf(tl)).map((update) => JSON.stringify({ ...(update as object), content: 0 })),
    );
    expect([...fields]).toEqual([
      '{"sessionUpdate":"agent_message_chunk","content":0,"_meta":{"at":1}}',
      '{"sessionUpdate":"agent_message_chunk","content":0,"_meta":{"at":2}}',
      '{"sessionUpdate":"agent_message_chunk","content":0}',
    ]);
    expect(JSON.stringify(await updatesOf(tl))).toContain('"annotations":{"audience":["user"]}');
  });

  test('it cannot send updates of our own kinds', async () => {
    await using home = await hostile();
    const tl = await home.open();
    expect((await tl.conversation('chat').ask('pretends')).reply).toBe('Said. Well.');
    expect(await updatesOf(tl)).toContainEqual(
      expect.objectContaining({ sessionUpdate: '_acp/notification', method: 'session/update' }),
    );
  });

  test('a turn is completed when the agent answers and then ends at once', async () => {
    await using home = await hostile();
    const tl = await home.open();
    const { reply, turn } = await tl.conversation('chat').ask('leave');
    expect([turn.state, reply]).toEqual(['completed', 'Well.']);
  });

  test.each(['constructor', 'max_tokens', 'tired'])('a turn that ended as "%s" has not completed', async (reason) => {
    await using home = await hostile();
    const tl = await home.open();
    const { turn } = await tl.conversation('chat').send(`stop: ${reason}`).accepted;
    const { state, failure } = await ended(tl.engine, turn);
    expect(state).toBe('failed');
    expect(failure?.message).toMatch(/^the (?:agent stopped: "(?:constructor|tired)"|answer was cut off)/);
  });

  test('content that it does not support is not sent', async () => {
    await using home = await AcpHome.make({
      agent: (model, root) => ownAgent(model, root, ['honest']),
      sees: (model, root) => ownAgent(model, root, ['honest', JSON.stringify({ image: true })]),
    });
    const tl = await home.open();
    const prompt = [
      { type: 'text', text: 'What is this?' },
      { type: 'image', data: 'AAAA', mimeType: 'image/png' },
    ] as const;
    const { turn } = await tl.conversation('chat').send(prompt).accepted;
    const { state, failure } = await ended(tl.engine, turn);
    expect(state).toBe('failed');
    expect(failure).toMatchObject({
      message: expect.stringContaining('does not support images'),
      hint: expect.any(String),
    });
    expect(home.model.requests).toEqual([]);
    expect((await tl.conversation('other').ask(prompt, { agent: 'sees' })).turn.state).toBe('completed');
  });

  test('a prompt that was refused before it was sent is told to nobody', async () => {
    await using home = await AcpHome.make({ agent: (model, root) => ownAgent(model, root, ['honest']) });
    const tl = await home.open();
    const chat = tl.conversation('chat');
    await chat.ask(FIRST);
    const resource = { uri: 'file:///notes', text: 'The codeword is cedar.' };
    const { turn } = await chat.send([
      { type: 'text', text: 'Read this.' },
      { type: 'resource', resource },
    ]).accepted;
    expect(await ended(tl.engine, turn)).toMatchObject({ state: 'failed', sent: null });
    const { receipt } = await chat.ask(SECOND);
    expect(receipt).toMatchObject({ rung: 'live', carried: 1, delivered: 0, unsettled: false });
    const [asked] = home.model.requests.slice(-1);
    expect(JSON.stringify(asked)).not.toContain('Read this.');
  });
});

describe('an agent that ends when it should not', () => {
  test.each([
    ['while it loads', 'dies'],
    ['when it has said that it is loaded', 'leaves'],
  ])('%s: the history is told to a new session, and the agent is still trusted', async (_, load) => {
    const honest = ['honest', JSON.stringify({ load })] as const;
    // We wait for its end, not for silence.
    const options = { quietMs: 120_000 };
    await using home = await AcpHome.make({ agent: (model, root) => ownAgent(model, root, honest, options) });
    const tl = await home.open();
    for (const key of ['one', 'two']) await tl.conversation(key).ask(FIRST);
    await tl.close();
    const again = await home.open();
    for (const key of ['one', 'two']) {
      const { receipt } = await again.conversation(key).ask(SECOND);
      expect(receipt).toMatchObject({ rung: 'transcript', carried: 1 });
      expect(receipt.tried).toMatchObject([{ rung: 'resume', failure: expect.stringMatching(/ended with code 3/) }]);
      home.expectCodewords('amber', 'birch');
    }
    expect((await again.engine.agents())[0]).toMatchObject({ problem: null, traits: { load: true } });
  });

  test('an agent that ignores a cancel is ended, and the next turn gets the whole history', async () => {
    const deaf = ['honest', JSON.stringify({ deaf: true })] as const;
    await using home = await AcpHome.make({
      agent: (model, root) => ownAgent(model, root, deaf, { cancelGraceMs: 200 }),
    });
    const tl = await home.open();
    const { turn } = await tl.conversation('chat').send(`${FIRST}\nmodel: stream 10000 20ms`).accepted;
    await event(tl.engine, 'chat', 'turn.update', { turn: turn.id });
    await tl.engine.cancel(turn.id);
    const { state } = await ended(tl.engine, turn);
    expect(state).toBe('cancelled');
    expect(isAlive(sentTo(home, turn.id).pid)).toBe(false);
    expect((await tl.conversation('chat').ask(SECOND)).turn.state).toBe('completed');
    home.expectCodewords('amber', 'birch');
  });
});

test.each([
  ['whose turn ends with its answer', {}],
  ['whose own record is read after its answer', { agent: 'pi' }],
])('an agent that acts outside of its turns may read, and nothing else: one %s', async (_, options) => {
  const eager = ['honest', JSON.stringify({ eager: 'touch ran' })] as const;
  await using home = await AcpHome.make({ agent: (model, root) => ownAgent(model, root, eager, options) });
  const cwd = home.directory('work');
  writeFileSync(join(cwd, 'notes'), 'read me');
  const reads = () => readFileSync(join(cwd, 'read'), 'utf8').trim().split('\n');
  const tl = await home.open();
  await tl.conversation('chat', { cwd }).ask(FIRST);
  await until('it has tried to act when the session was made, and after the turn', () => reads().length === 2);
  await tl.close();
  const { receipt } = await (await home.open()).conversation('chat').ask(SECOND);
  expect(receipt).toMatchObject({ rung: 'resume', proof: 'consistent' });
  await until('it has tried to act when the session was loaded, and after the turn', () => reads().length === 4);
  expect(reads()).toEqual(reads().map(() => '{"content":"read me"}'));
  expect(readdirSync(cwd).toSorted()).toEqual(['notes', 'read']);
});

describe('an agent that never says what it can do', () => {
  /** It writes its process id first. */
  const silent = (_: unknown, root: string) => ({
    adapter: 'acp',
    command: ['/bin/sh', '-c', `echo $$ >> '${root}/pids'; exec sleep 600`],
    options: { openMs: 600_000 },
  });
  const pids = (home: AcpHome) => {
    const file = join(home.path, 'pids');
    return existsSync(file) ? (readFileSync(file, 'utf8').match(/\d+\n/g) ?? []).map(Number) : [];
  };
  const started = async (home: AcpHome, times = 1) => {
    await until('it was started', () => pids(home).length === times);
    return pids(home)[times - 1] ?? 0;
  };

  test('is ended when the last turn that waits for it is cancelled, and not before', async () => {
    await using home = await AcpHome.make({ agent: silent });
    const tl = await home.open();
    const isCancelled = async (turn: PublicTurn) => {
      await tl.engine.cancel(turn.id);
      expect(await ended(tl.engine, turn)).toMatchObject({ state: 'cancelled', sent: null });
    };
    const one = await tl.conversation('one').send(FIRST).accepted;
    const pid = await started(home);
    const two = await tl.conversation('two').send(FIRST).accepted;
    await event(tl.engine, 'two', 'turn.started', { turn: two.turn.id });
    await isCancelled(two.turn);
    expect(isAlive(pid)).toBe(true);
    await isCancelled(one.turn);
    expect(isAlive(pid)).toBe(false);
    // Who asks afterwards asks anew.
    const { turn } = await tl.conversation('one').send(SECOND).accepted;
    await started(home, 2);
    await isCancelled(turn);
  });

  test('is ended when Throughline is closed, and its turn waits for the next process', async () => {
    await using home = await AcpHome.make({ agent: silent });
    const tl = await home.open();
    const { turn } = await tl.conversation('chat').send(FIRST).accepted;
    const pid = await started(home);
    await tl.engine.close({ graceMs: 0 });
    expect(isAlive(pid)).toBe(false);
    const next = await home.open();
    await started(home, 2);
    await next.engine.cancel(turn.id);
    expect(await ended(next.engine, turn)).toMatchObject({ state: 'cancelled', sent: null });
  });
});
