import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import { scriptedAgent } from '../../../src/agents/scripted/adapter.ts';
import { compose } from '../../../src/compose.ts';
import type { Agent } from '../../../src/ports/agent.ts';
import type { Engine } from '../../../src/ports/engine.ts';
import { ask, TestSandboxes } from '../../contracts/agent-sandbox.ts';
import { codewordsIn, ended, expectSound, refusedWith, run, until, WHICH_CODEWORDS } from '../support/conversations.ts';
import { Home } from '../support/home.ts';

/** Sessions that were made without Throughline, in a storage that every sandbox of the home uses. */
class NativeSessions implements AsyncDisposable {
  readonly sandboxes = new TestSandboxes();
  readonly dir = join(this.sandboxes.root, 'native');

  /** Makes a session with one turn for each codeword, and returns its id. */
  async create(...codewords: string[]): Promise<string> {
    const agent = scriptedAgent({ name: 'a', options: { dir: this.dir } });
    const session = await this.sandboxes.open(agent, await this.sandboxes.sandbox());
    for (const word of codewords) await ask(session, `The codeword is ${word}.`);
    await session.close();
    return session.id ?? expect.unreachable();
  }

  /** Adds a prompt to the session, as another program would. */
  async addPrompt(id: string, codeword: string): Promise<void> {
    const agent = scriptedAgent({ name: 'a', options: { dir: this.dir } });
    const session = await this.sandboxes.open(agent, await this.sandboxes.sandbox(), { kind: 'resume', id });
    await ask(session, `The codeword is ${codeword}.`);
    await session.close();
  }

  async [Symbol.asyncDispose]() {
    await this.sandboxes.dispose();
  }
}

/** Each turn as its number, its codeword (`?`: it has none), and whether it was imported. */
const turnLines = async (engine: Engine, key: string) =>
  (await engine.show(key)).turns.map(({ n, prompt, imported }) => {
    const [block] = prompt;
    const [, word = '?'] = /codeword is (\w+)/.exec(block?.type === 'text' ? block.text : '') ?? [];
    return `${n} ${word}${imported ? ' imported' : ''}`;
  });

test('the turns of an adopted session become turns of the conversation, before the one that adopts it', async () => {
  await using natives = new NativeSessions();
  await using home = new Home({ a: { dir: natives.dir } });
  const { engine } = await home.open();
  const id = await natives.create('amber', 'birch', 'cobalt');
  await engine.ensure({ key: 'chat' });
  const { turn, receipt, reply } = await run(engine, 'chat', WHICH_CODEWORDS, { session: id });
  expect(codewordsIn(reply)).toEqual(['amber', 'birch', 'cobalt']);
  expect(turn).toMatchObject({ n: 4, imported: false, sessionId: id });
  expect(receipt).toMatchObject({ rung: 'resume', carried: 3, delivered: 0, dropped: 0, proof: 'proved' });
  expect(await turnLines(engine, 'chat')).toEqual(['1 amber imported', '2 birch imported', '3 cobalt imported', '4 ?']);
  const { turns, sessions, conversation } = await engine.show('chat');
  expect(turns[0]).toMatchObject({ state: 'completed', agent: 'a', sessionId: id, reply: expect.stringMatching(/\S/) });
  expect(sessions).toMatchObject([{ id, origin: 'adopted', watermark: 4, dropped: 0, turns: 1 }]);
  expect(conversation).toMatchObject({ head: 4, historyCount: 4, title: 'The codeword is amber.' });
  await expectSound(engine, 'chat');
  // Imported turns do not count in the usage of the conversation.
  expect((await engine.usage())[0]?.turns).toBe(1);
});

test('the session of an agent that is not in the settings is adopted in the same way', async () => {
  await using natives = new NativeSessions();
  await using home = new Home();
  await using cleanup = new AsyncDisposableStack();
  const found = { found: { adapter: 'scripted', options: { dir: natives.dir }, env: {} } } as const;
  const { engine } = await compose({ home: home.path, settings: { agents: {} }, agents: found });
  cleanup.defer(() => engine.close()); // before the home is removed: otherwise closing waits a minute for the deleted storage
  const id = await natives.create('amber', 'birch');
  const { turn } = await run(engine, 'chat', WHICH_CODEWORDS, { session: id, agent: 'found' });
  expect(turn).toMatchObject({ n: 3, sessionId: id });
  expect(await turnLines(engine, 'chat')).toEqual(['1 amber imported', '2 birch imported', '3 ?']);
});

test.each(['a fork', 'another agent', 'the session after a diverged one', 'an import'])(
  '%s gets what was said before the session was adopted',
  async (which) => {
    await using natives = new NativeSessions();
    await using home = new Home({ a: { dir: natives.dir }, b: {} });
    const { engine } = await home.open();
    const id = await natives.create('amber', 'birch');
    await engine.ensure({ key: 'chat' });
    await run(engine, 'chat', 'The codeword is cobalt.', { session: id, agent: 'a' });
    if (which === 'a fork') await engine.fork('chat', { key: 'other' });
    if (which === 'an import') await engine.import(await engine.export('chat'), { key: 'other' });
    if (which === 'the session after a diverged one') await natives.addPrompt(id, 'dune');
    const key = which === 'a fork' || which === 'an import' ? 'other' : 'chat';
    const { reply, receipt } = await run(engine, key, WHICH_CODEWORDS, {
      agent: which === 'another agent' ? 'b' : 'a',
    });
    expect(codewordsIn(reply)).toEqual(['amber', 'birch', 'cobalt']);
    expect(receipt).toMatchObject({ rung: 'transcript', carried: 3, delivered: 3, dropped: 0 });
    expect((await engine.search('birch')).length).toBeGreaterThan(0);
  },
);

test('a conversation keeps its own turns before the imported ones, and the adopted session is told of them', async () => {
  await using natives = new NativeSessions();
  await using home = new Home({ a: { dir: natives.dir }, b: {} });
  const { engine } = await home.open();
  await engine.ensure({ key: 'chat' });
  // The sessions are kept warm, so a worker holds the conversation when the turns are imported.
  await run(engine, 'chat', 'The codeword is amber.', { agent: 'a' });
  await run(engine, 'chat', 'The codeword is birch.', { agent: 'b' });
  const id = await natives.create('cobalt', 'dune');
  const adopted = await run(engine, 'chat', WHICH_CODEWORDS, { session: id, agent: 'a' });
  expect(codewordsIn(adopted.reply)).toEqual(['cobalt', 'dune', 'amber', 'birch']);
  expect(adopted.receipt).toMatchObject({ rung: 'resume', carried: 4, delivered: 2, dropped: 0 });
  expect(adopted.turn).toMatchObject({ n: 5, sent: { delivered: { from: 1, to: 2, count: 2 } } });
  expect(await turnLines(engine, 'chat')).toEqual([
    '1 amber',
    '2 birch',
    '3 cobalt imported',
    '4 dune imported',
    '5 ?',
  ]);
  const next = await run(engine, 'chat', WHICH_CODEWORDS);
  expect(next.receipt).toMatchObject({ carried: 5, delivered: 0, dropped: 0 });
  const handed = await run(engine, 'chat', WHICH_CODEWORDS, { agent: 'b' });
  expect(codewordsIn(handed.reply)).toEqual(['amber', 'birch', 'cobalt', 'dune']);
  await expectSound(engine, 'chat');
});

test.each(['/fail agent_failed', '/die'])(
  'an adopted session whose first prompt did not complete (%s) is told of the earlier turns again',
  async (first) => {
    await using natives = new NativeSessions();
    await using home = new Home({ a: { dir: natives.dir }, b: {} });
    const { engine } = await home.open();
    await engine.ensure({ key: 'chat' });
    await run(engine, 'chat', 'The codeword is amber.', { agent: 'b' });
    const id = await natives.create('birch', 'cobalt');
    await run(engine, 'chat', first, { session: id, agent: 'a' });
    const { receipt, turn } = await run(engine, 'chat', WHICH_CODEWORDS);
    expect(turn).toMatchObject({ n: 5, sessionId: id });
    expect(receipt).toMatchObject({ carried: 4, delivered: 2, dropped: 0, unsettled: true });
    expect((await run(engine, 'chat', WHICH_CODEWORDS)).receipt).toMatchObject({
      carried: 5,
      delivered: 0,
      dropped: 0,
    });
  },
);

test('a fork that adopts the session of its erased parent imports its turns again, and tells it the copies like any other turns', async () => {
  await using natives = new NativeSessions();
  await using home = new Home({ a: { dir: natives.dir } });
  const { engine } = await home.open();
  await engine.ensure({ key: 'chat' });
  const { turn } = await run(engine, 'chat', 'The codeword is amber.');
  await engine.fork('chat', { key: 'fork' });
  await engine.erase('chat');
  const { receipt } = await run(engine, 'fork', WHICH_CODEWORDS, { session: turn.sessionId ?? expect.unreachable() });
  expect(receipt).toMatchObject({ rung: 'resume', carried: 2, delivered: 1, dropped: 0 });
  expect(await turnLines(engine, 'fork')).toEqual(['1 amber imported', '2 amber imported', '3 ?']);
});

test('a session is adopted once although the request is repeated, and never while a turn is open', async () => {
  await using natives = new NativeSessions();
  await using home = new Home({ a: { dir: natives.dir } });
  const { engine } = await home.open();
  const id = await natives.create('amber', 'birch');
  await engine.ensure({ key: 'chat' });
  const requests = Array.from({ length: 4 }, () =>
    engine.submit('chat', WHICH_CODEWORDS, { session: id, requestId: 'once' }),
  );
  const submitted = await Promise.all(requests);
  expect(new Set(submitted.map(({ turn }) => turn.id)).size).toBe(1);
  const [first] = submitted;
  await ended(engine, first?.turn ?? expect.unreachable());
  const again = await engine.submit('chat', WHICH_CODEWORDS, { session: id, requestId: 'once' });
  expect(again).toMatchObject({ duplicate: true, turn: { n: 3 } });
  expect((await run(engine, 'chat', WHICH_CODEWORDS, { session: id })).turn.n).toBe(4);
  expect(await turnLines(engine, 'chat')).toEqual(['1 amber imported', '2 birch imported', '3 ?', '4 ?']);

  await engine.ensure({ key: 'busy' });
  const { turn } = await engine.submit('busy', '/hang');
  const other = await natives.create('cobalt');
  await refusedWith(
    'conflict',
    engine.submit('busy', WHICH_CODEWORDS, { session: other }),
    /while the conversation has an open turn/,
  );
  await engine.cancel(turn.id);
  await ended(engine, turn);
  expect(codewordsIn((await run(engine, 'busy', WHICH_CODEWORDS, { session: other })).reply)).toEqual(['cobalt']);
});

test('the first prompt to a key adopts a session, and creates nothing when the session is in use elsewhere', async () => {
  await using natives = new NativeSessions();
  await using home = new Home({ a: { dir: natives.dir } });
  const { engine } = await home.open();
  const id = await natives.create('amber', 'birch');
  const { turn } = await engine.submit('chat', WHICH_CODEWORDS, { session: id });
  expect(codewordsIn((await run(engine, 'chat', WHICH_CODEWORDS)).reply)).toEqual(['amber', 'birch']);
  expect(await ended(engine, turn)).toMatchObject({ n: 3, state: 'completed', sessionId: id });
  const directories = () => readdirSync(join(home.path, 'sandboxes')).length;
  const before = directories();
  await refusedWith('refused', engine.submit('second', WHICH_CODEWORDS, { session: id }), /in use elsewhere/);
  expect(directories()).toBe(before);
  const stranger = engine.as('somebody else');
  await refusedWith('refused', stranger.submit('second', WHICH_CODEWORDS, { session: id }), /in use elsewhere/);
  for (const one of [engine, stranger]) await refusedWith('not_found', one.conversation('second'), /second/);
  await expectSound(engine, 'chat');
});

test('a first prompt with settings adopts a session of the agent that they name, and refuses an unknown agent', async () => {
  await using natives = new NativeSessions();
  await using home = new Home({ a: {}, b: { dir: natives.dir } });
  const { engine } = await home.open();
  const session = await natives.create('amber', 'birch');
  const { turn } = await engine.submit('chat', WHICH_CODEWORDS, { session, create: { agent: 'b', title: 'Chat' } });
  expect(await ended(engine, turn)).toMatchObject({ n: 3, agent: 'b', state: 'completed', sessionId: session });
  expect(await turnLines(engine, 'chat')).toEqual(['1 amber imported', '2 birch imported', '3 ?']);
  await refusedWith('agent_unavailable', engine.submit('other', 'Hello', { agent: 'a', create: { agent: 'nope' } }));
  await refusedWith('not_found', engine.conversation('other'));
});

test('a turn fails if somebody adds a prompt to the session after its history was read', async () => {
  await using natives = new NativeSessions();
  await using home = new Home({ a: { dir: natives.dir } });
  const id = await natives.create('amber');
  const change = {
    agent: (agent: Agent): Agent => ({
      ...agent,
      async history(...args) {
        const history = (await agent.history?.(...args)) ?? null;
        await natives.addPrompt(id, 'birch');
        return history;
      },
    }),
  };
  const engine = await home.engine(change);
  await engine.ensure({ key: 'chat' });
  const { turn } = await run(engine, 'chat', WHICH_CODEWORDS, { session: id });
  expect(turn).toMatchObject({ state: 'failed', sent: null, failure: { code: 'refused' } });
  expect(turn.failure?.message).toContain('somebody else has used it since');
  // The conversation keeps the turns that were read, and continues without the session.
  expect(codewordsIn((await run(engine, 'chat', WHICH_CODEWORDS)).reply)).toEqual(['amber']);
});

test('earlier history of an adopted session that cannot be read is unknown to all other sessions, and their receipts say so', async () => {
  await using natives = new NativeSessions();
  // `position: false`: the adapter does not read the storage.
  await using home = new Home({ a: { dir: natives.dir, position: false }, b: {} });
  const { engine } = await home.open();
  await engine.ensure({ key: 'chat', restore: { policy: 'auto' } });
  await run(engine, 'chat', 'The codeword is amber.', { agent: 'b' });
  const id = await natives.create('birch');
  const adopted = await run(engine, 'chat', WHICH_CODEWORDS, { session: id, agent: 'a' });
  expect(codewordsIn(adopted.reply)).toEqual(['birch', 'amber']);
  expect(adopted.receipt).toMatchObject({ rung: 'resume', proof: 'none', carried: 1, unknownBefore: null });
  // For the session itself, nothing is unknown.
  expect((await run(engine, 'chat', WHICH_CODEWORDS)).receipt).toMatchObject({ sessionId: id, unknownBefore: null });

  const handed = await run(engine, 'chat', WHICH_CODEWORDS, { agent: 'b' });
  expect(handed.receipt).toMatchObject({ carried: 3, dropped: 0, unknownBefore: 2, proof: 'counted' });
  await engine.fork('chat', { key: 'forked' });
  await engine.fork('chat', { key: 'before', turn: 1 });
  await engine.import(JSON.parse(JSON.stringify(await engine.export('chat'))), { key: 'imported' });
  const receipts = [];
  for (const key of ['forked', 'imported', 'before'])
    receipts.push((await run(engine, key, WHICH_CODEWORDS, { agent: 'b' })).receipt);
  expect(receipts).toMatchObject([
    { rung: 'transcript', unknownBefore: 2, proof: 'counted' },
    { rung: 'transcript', unknownBefore: 2, proof: 'counted' },
    { rung: 'transcript', unknownBefore: null, proof: 'proved' },
  ]);
  // Later receipts say so as well.
  expect((await run(engine, 'forked', WHICH_CODEWORDS)).receipt).toMatchObject({
    rung: 'live',
    unknownBefore: 2,
    proof: 'counted',
  });
  await expectSound(engine, 'chat');
});

test('ten thousand turns are imported once, also when the process that imports them is killed', async () => {
  await using natives = new NativeSessions();
  await using home = new Home({ a: { dir: natives.dir } });
  const id = await natives.create('amber');
  const line = (n: number, what: object) => ({
    uuid: `u${n}`,
    parent: n === 1 ? null : `u${n - 1}`,
    n,
    at: n,
    ...what,
  });
  const said = (text: string) => ({ sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } });
  const lines = Array.from({ length: 20_000 }, (_, i) =>
    i % 2 === 0
      ? line(i + 1, { role: 'user', text: `The codeword is word${i / 2 + 1}.` })
      : line(i + 1, { role: 'agent', update: said(`Noted: ${'x'.repeat(200)}`) }),
  );
  writeFileSync(join(natives.dir, `${id}.jsonl`), lines.map((one) => `${JSON.stringify(one)}\n`).join(''));
  const imported = () => home.query<{ n: number }>('SELECT count(*) AS n FROM turns WHERE imported = 1')[0]?.n;
  const options = { session: id, requestId: 'once', permissions: 'deny' } as const;
  // Kills before the import has begun, and in the middle of its transaction.
  for (const moment of [async () => {}, () => untilLongTransaction(home)]) {
    const host = await home.host();
    await host.engine.ensure({ key: 'chat' });
    const submitting = host.engine.submit('chat', WHICH_CODEWORDS, options).catch(() => null); // a killed host gives no answer
    await Promise.race([submitting, moment()]);
    await host.kill();
    expect([0, 10_000]).toContain(imported());
  }
  const { engine } = await home.open();
  const { turn } = await engine.submit('chat', WHICH_CODEWORDS, options);
  expect(turn.n).toBe(10_001);
  await ended(engine, turn);
  expect(imported()).toBe(10_000);
  expect(await engine.conversation('chat')).toMatchObject({ head: 10_001, historyCount: 10_001 });
});

/** Waits until one transaction has held the write lock of the database for longer than a small one does. */
async function untilLongTransaction(home: Home): Promise<void> {
  let looks = 0;
  await until('a long transaction runs', () => {
    looks = isWriteLocked(home.file) ? looks + 1 : 0;
    return looks === 3;
  });
}

function isWriteLocked(file: string): boolean {
  const db = new DatabaseSync(file, { timeout: 0 });
  try {
    db.exec('BEGIN IMMEDIATE');
    db.exec('ROLLBACK');
    return false;
  } catch (error) {
    expect(error).toMatchObject({ errcode: 5 }); // SQLITE_BUSY
    return true;
  } finally {
    db.close();
  }
}
