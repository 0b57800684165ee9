// Agents that violate the protocol. What they send is recorded and breaks nothing.
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { PublicTurn } from '../../../src/core/public/turn.ts';
import { until } from '../../contracts/agent-sandbox.ts';
import { isAlive } from '../../contracts/liveness.ts';
import { allEvents, ended, event } from '../../e2e/support/conversations.ts';
import { sentTo } from '../../e2e/support/stored.ts';
import { smallAgent } from '../support/acp-agents.ts';
import { AcpHome } from '../support/acp-home.ts';
import { FIRST, SECOND } from '../support/agent-home.ts';

const hostileHome = () => AcpHome.make({ agent: (model, root) => smallAgent(model, root, ['hostile']) });

async function updatesOf(tl: Awaited<ReturnType<AcpHome['open']>>): Promise<unknown[]> {
  const events = (await allEvents(tl.engine, 'chat')).filter(({ kind }) => kind === 'turn.update');
  return events.map(({ payload }) => (payload as { update: unknown }).update);
}

describe('an agent that violates the protocol', () => {
  test('may send fields of wrong types: they are recorded unchanged and break nothing', async () => {
    await using home = await hostileHome();
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
    // A new session gets this turn like any other.
    await tl.close();
    const next = await (await home.open()).conversation('chat').ask('Go on.');
    expect(next.receipt).toMatchObject({ rung: 'transcript', carried: 1 });
  });

  test('may send chunks with additional fields: chunks are joined only if these are equal', async () => {
    await using home = await hostileHome();
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

  test('cannot send updates of our own kinds', async () => {
    await using home = await hostileHome();
    const tl = await home.open();
    expect((await tl.conversation('chat').ask('our kind')).reply).toBe('Said. Well.');
    expect(await updatesOf(tl)).toContainEqual(
      expect.objectContaining({ sessionUpdate: '_acp/notification', method: 'session/update' }),
    );
  });

  test('may not lose a message without notice: after one that is nested too deep, its answer does not count', async () => {
    await using home = await hostileHome();
    const tl = await home.open();
    const { turn } = await tl.conversation('chat').send('too deep').accepted;
    const { state, failure } = await ended(tl.engine, turn);
    expect(state).toBe('interrupted');
    expect(failure?.message).toContain('it printed a message that is nested deeper than 200 levels');
    expect(JSON.stringify(await updatesOf(tl))).not.toContain('Well.');
    // Its session is opened again, or replaced.
    expect((await tl.conversation('chat').ask('Go on.')).reply).toBe('Well.');
  });

  test('may exit right after its answer: the turn is completed', async () => {
    await using home = await hostileHome();
    const tl = await home.open();
    const { reply, turn } = await tl.conversation('chat').ask('exit');
    expect([turn.state, reply]).toEqual(['completed', 'Well.']);
  });

  test.each(['constructor', 'max_tokens', 'tired'])(
    'may give the stop reason "%s": the turn is failed',
    async (reason) => {
      await using home = await hostileHome();
      const tl = await home.open();
      const { turn } = await tl.conversation('chat').send(`stop: ${reason}`).accepted;
      const { state, failure } = await ended(tl.engine, turn);
      expect(state).toBe('failed');
      expect(failure?.message).toMatch(/^the (?:agent stopped: "(?:constructor|tired)"|answer was cut off)/);
    },
  );
});

describe('a prompt with content that the agent does not support', () => {
  test('is not sent', async () => {
    await using home = await AcpHome.make({
      agent: (model, root) => smallAgent(model, root, ['complete']),
      withImages: (model, root) => smallAgent(model, root, ['complete', JSON.stringify({ image: true })]),
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
    expect((await tl.conversation('other').ask(prompt, { agent: 'withImages' })).turn.state).toBe('completed');
  });

  test('is not delivered with a later turn either', async () => {
    await using home = await AcpHome.make({ agent: (model, root) => smallAgent(model, root, ['complete']) });
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
    expect(JSON.stringify(home.model.lastRequest())).not.toContain('Read this.');
  });
});

describe('an agent that exits or does not stop', () => {
  test.each([
    ['while it loads a session', 'exits'],
    ['after it has reported a session as loaded', 'exits later'],
  ])('when it exits %s, a new session gets the history, and the agent is still trusted', async (_, load) => {
    const program = ['complete', JSON.stringify({ load })] as const;
    // So long that only the exit of the agent can end the wait for its history.
    const options = { quietMs: 120_000 };
    await using home = await AcpHome.make({ agent: (model, root) => smallAgent(model, root, program, options) });
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

  test('when it ignores a cancel, its process is ended, and the next turn gets the whole history', async () => {
    const program = ['complete', JSON.stringify({ ignoresCancel: true })] as const;
    await using home = await AcpHome.make({
      agent: (model, root) => smallAgent(model, root, program, { cancelGraceMs: 200 }),
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
  ['an agent whose turn ends with its answer', {}],
  ['an agent whose own record we read after its answer (pi)', { agent: 'pi' }],
])('outside of its turns an agent may read files, but not write them or run commands: %s', async (_, options) => {
  const program = ['complete', JSON.stringify({ actsBetweenTurns: 'touch ran' })] as const;
  await using home = await AcpHome.make({ agent: (model, root) => smallAgent(model, root, program, options) });
  const cwd = home.directory('work');
  writeFileSync(join(cwd, 'notes'), 'read me');
  const reads = () => readFileSync(join(cwd, 'read'), 'utf8').trim().split('\n');
  const tl = await home.open();
  await tl.conversation('chat', { cwd }).ask(FIRST);
  await until('it has acted when the session was made and after the turn', () => reads().length === 2);
  await tl.close();
  const { receipt } = await (await home.open()).conversation('chat').ask(SECOND);
  expect(receipt).toMatchObject({ rung: 'resume', proof: 'consistent' });
  await until('it has acted when the session was loaded and after the turn', () => reads().length === 4);
  expect(reads()).toEqual(reads().map(() => '{"content":"read me"}'));
  expect(readdirSync(cwd).toSorted()).toEqual(['notes', 'read']);
});

describe('an agent that never answers `initialize`', () => {
  /** It writes its process id to a file. */
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
    const cancel = async (turn: PublicTurn) => {
      await tl.engine.cancel(turn.id);
      expect(await ended(tl.engine, turn)).toMatchObject({ state: 'cancelled', sent: null });
    };
    const one = await tl.conversation('one').send(FIRST).accepted;
    const pid = await started(home);
    const two = await tl.conversation('two').send(FIRST).accepted;
    await event(tl.engine, 'two', 'turn.started', { turn: two.turn.id });
    await cancel(two.turn);
    expect(isAlive(pid)).toBe(true);
    await cancel(one.turn);
    expect(isAlive(pid)).toBe(false);
    // The next turn starts the agent again.
    const { turn } = await tl.conversation('one').send(SECOND).accepted;
    await started(home, 2);
    await cancel(turn);
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
