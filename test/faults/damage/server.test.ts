import { randomUUIDv7 } from 'node:crypto';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as pause } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { connect } from '../../../src/clients/http/connect.ts';
import { socketTransport } from '../../../src/clients/http/connection/node-transport.ts';
import { composeDoctor } from '../../../src/compose.ts';
import { systemClock } from '../../../src/host/clock.ts';
import { bootId } from '../../../src/host/processes.ts';
import { openSqliteStore } from '../../../src/stores/sqlite/store.ts';
import { ServedHome, TOKEN } from '../../e2e/http/support/served-home.ts';
import { until } from '../harness/until.ts';
import { damagePages } from './damaged-page.ts';

/** Long enough that a page has only one row of it. */
const long = (word: string) => `${word} `.repeat(Math.ceil(3_000 / (word.length + 1)));
const fileOf = (home: ServedHome) => join(home.path, 'home', 'throughline.db');

/** `bad` comes first, and then enough others that new rows go to other pages. */
async function withConversations(): Promise<ServedHome> {
  const home = await ServedHome.start({ engine: { maxWarm: 0 } });
  const { caller } = home;
  const say = async (key: string, words: string) => {
    const { turn } = await caller.ok('POST', `/conversations/${key}/turns`, { prompt: `/say ${long(words)}` });
    await caller.finished(turn);
  };
  await caller.ok('POST', '/conversations', { key: 'bad', title: 'x'.repeat(190) });
  for (const n of [1, 2]) await say('bad', `bad-${n}`);
  const more = Array.from({ length: 60 }, (_, n) => ({ key: `more-${n}`, title: 'x'.repeat(190) }));
  await Promise.all(more.map((one) => caller.ok('POST', '/conversations', one)));
  for (const n of [1, 2, 3, 4, 5]) await say('more-1', `more-${n}`);
  for (const n of [1, 2]) await say('good', `good-${n}`);
  return home;
}

/** Leaves a turn as a process that has ended does: accepted, and not begun. */
async function enqueue(home: ServedHome, conversation: string): Promise<void> {
  const store = await openSqliteStore({ file: fileOf(home), clock: systemClock, boot: bootId() });
  const prompt = [{ type: 'text' as const, text: 'Are you there?' }];
  const asked = { requestId: null, agent: 'scripted', defaultAgent: null, prompt, options: {}, retryOf: null };
  await store.enqueue('local', { id: randomUUIDv7(), conversation, ...asked });
  await store.close();
}

const query = (home: ServedHome, sql: string) => {
  const db = new DatabaseSync(fileOf(home), { readOnly: true });
  try {
    return db.prepare(sql).all() as Record<string, number | string | null>[];
  } finally {
    db.close();
  }
};

/** Checks what an operator sees of the damage. `name`: that of the conversation in the report of `doctor`. */
async function expectReported(home: ServedHome, name: string): Promise<void> {
  const { body, status } = await home.caller.get('//healthz');
  expect([status, body.status, body.reasons]).toEqual([
    200,
    'degraded',
    expect.arrayContaining([{ code: 'storage_damaged' }]),
  ]);
  expect(home.log.some((line) => line.includes('storage_damaged'))).toBe(true);
  const doctor = await composeDoctor({ home: join(home.path, 'home') }, async () => null);
  const found = await doctor.examine();
  await doctor.close();
  const subjects = found.filter(({ check }) => check === 'file').map(({ subject }) => subject);
  expect(subjects).toContain('database');
  expect(subjects).toContain(`conversation ${name}`);
  expect(subjects).not.toContain('conversation good');
}

async function expectOthersRun(home: ServedHome): Promise<void> {
  const { turn } = await home.caller.ok('POST', '/conversations/good/turns', { prompt: 'Which words have you seen?' });
  expect((await home.caller.finished(turn)).turn.state).toBe('completed');
}

async function stop(home: ServedHome): Promise<void> {
  await home[Symbol.asyncDispose]();
}

test.each([
  ['records', 'export', ['failed', 'storage_damaged']],
  ['turns', 'view', ['failed', 'storage_damaged']],
  ['events', 'verify', ['completed', undefined]], // an agent is told records, not events
])(
  'damage in the %s of one conversation: a turn that needs them fails, the damage is reported, the others continue',
  async (table, read, ends) => {
    const home = await withConversations();
    await home.down();
    damagePages(fileOf(home), table, 'bad-1 bad-1');
    await home.up();
    const restore = { rebuild: true, rung: 'transcript' }; // needs its whole history
    const asked = await home.caller.post('/conversations/bad/turns', { prompt: 'And now?', restore });
    expect(asked.status).toBe(202);
    const turn = await until('it has ended', async () => {
      const { body } = await home.caller.get(`/turns/${asked.body.turn.id}`);
      return body.endedAt === null ? null : body;
    });
    expect([turn.state, turn.failure?.code]).toEqual(ends);
    await expectOthersRun(home);
    const refused = await home.caller.get(`/conversations/bad/${read}`);
    expect([refused.status, refused.body.code]).toEqual([500, 'storage_damaged']);
    await expectReported(home, 'bad');
    await stop(home);
  },
);

test.each(['conversations', 'leases'])(
  'damage in the row of %s: the conversation is set aside, longer each time, and the others continue',
  async (table) => {
    const home = await withConversations();
    const { id } = await home.caller.ok('GET', '/conversations/bad');
    await home.down();
    await enqueue(home, id);
    const [{ chain } = { chain: '' }] = query(
      home,
      `SELECT hex(chain) AS chain FROM leases l JOIN conversations c ON c.no = l.conv WHERE c.id = '${id}'`,
    );
    const needle = table === 'leases' ? Buffer.from(String(chain), 'hex') : id;
    damagePages(fileOf(home), table, needle);
    await home.up();
    await expectOthersRun(home);
    await until('it is reported', async () => (await home.caller.get('//healthz')).body.status === 'degraded');
    const tries = () => home.log.filter((line) => line.includes('is set aside for')).length;
    await until('it was tried again', () => tries() >= 2);
    const cpu = process.cpuUsage();
    const before = tries();
    await pause(2_000);
    const { user, system } = process.cpuUsage(cpu);
    expect(tries() - before).toBeLessThan(5);
    expect((user + system) / 1_000, 'milliseconds of the processor in two seconds').toBeLessThan(1_000);
    expect(home.log.filter((line) => line.includes(id)).length).toBeGreaterThan(0);
    await expectReported(home, table === 'conversations' ? id : 'bad'); // its key is on the damaged page
    await expectOthersRun(home);
    await stop(home);
  },
);

test('a reader of damaged events gets an error, and does not reconnect again and again', async () => {
  const home = await withConversations();
  await home.down();
  damagePages(fileOf(home), 'events', 'bad-2 bad-2');
  await home.up();
  const follows = () => home.log.filter((line) => line.includes('"operation":"follow"')).length;
  const before = follows();
  const client = await connect({ transport: socketTransport(home.socket), token: TOKEN });
  const reading = async () => {
    for await (const _ of client.follow('bad'));
  };
  await expect(reading()).rejects.toMatchObject({ code: 'storage_damaged', hint: expect.stringContaining('doctor') });
  await client.close();
  await until('it is in the log', () => follows() > before);
  expect(follows() - before).toBe(1);
  await stop(home);
});
