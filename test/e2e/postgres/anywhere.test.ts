import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { until } from '../../faults/harness/until.ts';
import { NO_POOLER, Pooler } from '../../postgres/pooler.ts';
import { NO_POSTGRES, postgresServer } from '../../postgres/server.ts';
import { Servers } from '../../postgres/servers.ts';
import type { CliHome } from '../cli/process.ts';
import { read } from '../http/support/caller.ts';
import type { ServedProcess } from '../http/support/served-process.ts';

// A change at one of two servers is visible at the other at once. If pgbouncer is installed, the second server connects through it.

const postgres = postgresServer();
let database: string;
let all: Servers;
let homes: readonly CliHome[];
let pooler: Pooler | null = null;
let a: ServedProcess;
let b: ServedProcess;

beforeAll(async () => {
  if (NO_POSTGRES !== null) return;
  database = await postgres().database();
  all = new Servers(postgres().url(database));
  homes = [all.newHome(), all.newHome()];
  pooler = NO_POOLER === null ? await Pooler.of(postgres()) : null;
  const throughPooler = pooler && { env: { THROUGHLINE_STORE: pooler.urlWithListen(database, postgres()) } };
  const [first, second] = homes as [CliHome, CliHome];
  [a, b] = await Promise.all([all.serve(first), all.serve(second, throughPooler ?? {})]);
});
afterAll(async () => {
  if (NO_POSTGRES === null) await all[Symbol.asyncDispose]();
  await pooler?.[Symbol.asyncDispose]();
});

if (NO_POSTGRES === null) describe('with two servers on one PostgreSQL', anywhere);
else test('with two servers on one PostgreSQL', (context) => context.skip(NO_POSTGRES ?? ''));

const rows = (sql: string) => postgres().query(sql, [], database);
const prompt = async ({ caller }: ServedProcess, key: string, text: string, more: object = {}) =>
  (await caller.ok('POST', `/conversations/${key}/turns`, { prompt: text, ...more })).turn;

function anywhere(): void {
  test('a request that is sent to both at once becomes one turn, also the first one to a new key', async () => {
    const requests = Array.from({ length: 8 }, (_, n) =>
      Promise.all([a, b, a, b].map((server) => prompt(server, `c${n % 4}`, 'hello', { requestId: `r${n}` }))),
    );
    for (const turns of await Promise.all(requests)) expect(new Set(turns.map(({ id }) => id)).size).toBe(1);
    expect(await rows('SELECT count(*)::int FROM turns')).toEqual([{ count: 8 }]);
    await until('all have ended', async () => (await rows('SELECT 1 FROM turns WHERE ended_at IS NULL')).length === 0);
    expect(await rows("SELECT 1 FROM turns WHERE state <> 'completed'")).toEqual([]);
  });

  test('a key is valid at both as soon as it is created, and at neither after it is revoked', async () => {
    const [first, second] = homes as [CliHome, CliHome];
    const [{ key, id }] = await first.lines('keys', 'create', 'phone');
    const statusAt = async ({ url }: ServedProcess) => {
      const headers = { authorization: `Bearer ${key}` };
      return (await read('GET', '/v1/me', await fetch(`${url}/v1/me`, { headers }))).status;
    };
    expect(await Promise.all([a, b].map(statusAt))).toEqual([200, 200]);
    await second.ok('keys', 'revoke', id);
    expect(await Promise.all([a, b].map(statusAt))).toEqual([401, 401]);
  });

  test('a conversation that is renamed, forked, searched, queued, killed or erased at one is the same at the other', async () => {
    await a.caller.finished(await prompt(a, 'notes', 'The codeword is osprey'));
    await b.caller.ok('PATCH', '/conversations/notes', { title: 'Birds' });
    expect(await a.caller.ok('GET', '/conversations/notes')).toMatchObject({ title: 'Birds' });
    expect((await b.caller.ok('GET', '/search?q=osprey')).hits).toHaveLength(1);
    await b.caller.ok('POST', '/conversations/notes/fork', { key: 'other' });
    const { reply } = await a.caller.finished(await prompt(a, 'other', 'Which codewords have you seen?'));
    expect(reply).toContain('osprey');

    const hanging = await prompt(a, 'notes', '/say Here.\n/hang');
    // Until then the queue has this turn, too.
    for await (const { data } of a.caller.events('/conversations/notes/events')) {
      if (data.kind === 'turn.update' && data.turnId === hanging.id) break;
    }
    const waiting = [await prompt(a, 'notes', 'first'), await prompt(b, 'notes', 'second')];
    for (const { caller } of [a, b]) {
      const { queue } = await caller.ok('GET', '/conversations/notes/queue');
      expect(queue.map(({ id }: { id: string }) => id)).toEqual(waiting.map(({ id }) => id));
    }
    await b.caller.ok('POST', '/conversations/notes/kill');
    expect((await b.caller.finished(hanging)).turn.state).toBe('interrupted');
    for (const turn of waiting) expect((await b.caller.finished(turn)).turn.state).toBe('completed');

    const liveSession = `
      SELECT s.process FROM sessions s JOIN conversations c ON c.no = s.conv WHERE c.key = 'notes' AND s.state = 'live'`;
    const [{ process }] = (await rows(liveSession)) as [{ process: string }];
    const { pid } = JSON.parse(JSON.parse(process).id);
    expect(existsSync(`/proc/${pid}`)).toBe(true);
    await b.caller.ok('DELETE', '/conversations/notes');
    for (const { caller } of [a, b]) expect((await caller.get('/conversations/notes')).status).toBe(404);
    await until('its agent has ended, whichever server ran it', () => !existsSync(`/proc/${pid}`));
  });

  test('usage and tasks are the same at both', async () => {
    const usage = async ({ caller }: ServedProcess) => (await caller.ok('GET', '/usage')).usage;
    await a.caller.finished(await prompt(a, 'used', 'hello'));
    expect(await usage(a)).not.toEqual([]);
    expect(await usage(a)).toEqual(await usage(b));
    const plan = (n: number) => ({ goal: `/tool write ${join(all.folder, `task-${n}`)}`, name: `task ${n}` });
    await Promise.all(
      [a, b].map(({ caller }, i) => caller.ok('POST', '/tasks', { plan: [plan(2 * i), plan(2 * i + 1)] })),
    );
    for (const { caller } of [a, b]) {
      await until('all are done', async () => {
        const { tasks } = await caller.ok('GET', '/tasks');
        return tasks.length === 4 && tasks.every(({ state }: { state: string }) => state === 'done');
      });
    }
    const events = await rows('SELECT seq::int FROM task_events ORDER BY no');
    expect(events.map(({ seq }) => seq)).toEqual(events.map((_, i) => i + 1));
  });

  test('one sends hints of what the other has stored', async () => {
    const stop = new AbortController();
    const hints = b.caller.events('/events', {}, stop.signal);
    await hints.next(); // shows that the stream is open: the bell also polls, and then sends a hint for all conversations
    const turn = await prompt(a, 'hinted', 'hello');
    for await (const { data } of hints) if (JSON.stringify(data).includes(turn.conversationId)) break;
    stop.abort();
  });
}
