import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { until } from '../../faults/harness/until.ts';
import { Network } from '../../postgres/network.ts';
import { NO_POSTGRES, postgresServer } from '../../postgres/server.ts';
import { Servers } from '../../postgres/servers.ts';
import { type Caller, read } from '../http/support/caller.ts';

// Two servers on one PostgreSQL database. Each has a data home of its own, but both reach the same directories (one place).

const postgres = postgresServer();
let database: string;
let all: Servers;

beforeEach(async () => {
  if (NO_POSTGRES !== null) return;
  database = await postgres().database();
  all = new Servers(postgres().url(database));
});
afterEach(async () => {
  if (NO_POSTGRES === null) await all[Symbol.asyncDispose]();
});

const rows = (sql: string) => postgres().query(sql, [], database);
const prompt = async (caller: Caller, text: string, more: object = {}) =>
  (await caller.ok('POST', '/conversations/notes/turns', { prompt: text, ...more })).turn;

/** The events of the conversation after a number, until one is of this kind. */
async function eventsUntil(caller: Caller, kind: string, after = 0) {
  const seen = [];
  for await (const { data } of caller.events(`/conversations/notes/events?after=${after}`)) {
    seen.push(data);
    if (data.kind === kind) break;
  }
  return seen;
}

const rungOf = async (caller: Caller) =>
  (await caller.ok('GET', '/conversations/notes/sessions')).receipts.at(-1)?.rung;

if (NO_POSTGRES === null) describe('two servers on one PostgreSQL', servers);
else test('two servers on one PostgreSQL', (context) => context.skip(NO_POSTGRES ?? ''));

function servers(): void {
  test('answer for each other; when one is stopped, the other continues its conversations and streams at once', async () => {
    const a = await all.serve(all.newHome());
    await a.caller.finished(await prompt(a.caller, 'The codeword is osprey')); // A is the only server so far, so it holds the conversation
    const b = await all.serve(all.newHome());
    expect((await b.caller.finished(await prompt(b.caller, 'Which codewords have you seen?'))).reply).toContain(
      'osprey',
    );
    expect(await rungOf(b.caller), 'it ran where the session is live').toBe('live');

    await prompt(b.caller, '/ask May I?', { permissions: 'ask' });
    const asked = (await eventsUntil(b.caller, 'permission.asked')).at(-1);
    await b.caller.ok('POST', `/permissions/${asked.payload.permissionId}`, { optionId: 'allow' });
    const answered = await eventsUntil(a.caller, 'turn.ended', asked.seq);
    expect(answered.at(-1).payload.outcome).toBe('completed');

    const hanging = await prompt(a.caller, '/say Here.\n/hang');
    const last = (await eventsUntil(a.caller, 'turn.update', answered.at(-1).seq)).at(-1).seq;
    await b.caller.ok('POST', `/turns/${hanging.id}/cancel`);
    const [first, ...others] = await eventsUntil(b.caller, 'turn.ended', last);
    expect(first.seq, 'the stream continues after the last number of the other').toBe(last + 1);
    expect((others.at(-1) ?? first).payload.outcome).toBe('cancelled');

    // Behind one public address, a link may lead to either server, and the cookie has one name. Here the name contains the port.
    const { link } = await a.caller.ok('POST', '/links', { owner: 'ann', scopes: ['read'] });
    const at = (server: { url: string }) => link.replace(a.url, server.url);
    const opened = await Promise.all([b, a, b, a].map((server) => fetch(at(server), { redirect: 'manual' })));
    expect(opened.map(({ status }) => status).toSorted(), 'it works once, at one of the two').toEqual([
      303, 401, 401, 401,
    ]);
    const cookies = opened
      .map(({ headers }) => headers.get('set-cookie')?.split(';')[0])
      .filter((one) => one !== undefined);
    expect(cookies).toHaveLength(1);
    for (const { url } of [a, b]) {
      const cookie = cookies[0]?.replace(/-\d+=/, `-${new URL(url).port}=`) ?? '';
      const headers = { cookie, 'sec-fetch-site': 'same-origin' };
      const me = await read('GET', '/v1/me', await fetch(`${url}/v1/me`, { headers }));
      expect(me.body, 'each server accepts the cookie').toMatchObject({ owner: 'ann', by: 'page', scopes: ['read'] });
    }
    expect(
      await rows('SELECT owner FROM sign_in_links'),
      'only the links that the two servers printed at their start',
    ).toEqual([...[{ owner: 'local' }, { owner: 'local' }]]);

    a.running.kill('SIGTERM');
    expect(await a.running.ended).toMatchObject({ code: 0 });
    expect(
      await rows('SELECT 1 FROM leases WHERE worker IS NOT NULL'),
      'no lease is left that would have to end',
    ).toEqual([]);
    expect((await b.caller.finished(await prompt(b.caller, 'Which codewords have you seen?'))).reply).toContain(
      'osprey',
    );
    expect(await rungOf(b.caller)).toBe('resume');
  });

  test('take over when one is killed: its turn ends once, and the next turn has the history', async () => {
    const a = await all.serve(all.newHome());
    await a.caller.finished(await prompt(a.caller, 'The codeword is osprey')); // A is the only server so far, so it holds the conversation
    const b = await all.serve(all.newHome());
    const endOfFirst = (await eventsUntil(a.caller, 'turn.ended')).at(-1).seq;
    const running = await prompt(a.caller, '/say Here.\n/hang');
    const last = (await eventsUntil(a.caller, 'turn.update', endOfFirst)).at(-1).seq;
    a.running.kill('SIGKILL');
    const rest = await eventsUntil(b.caller, 'turn.ended', last);
    expect(rest.map(({ seq }) => seq)).toEqual(rest.map((_, index) => last + 1 + index));
    expect(rest.at(-1)).toMatchObject({ turnId: running.id, payload: { outcome: 'interrupted' } });
    expect((await b.caller.finished(await prompt(b.caller, 'Which codewords have you seen?'))).reply).toContain(
      'osprey',
    );
  });

  test('on two machines do not take over from each other before the lease ends', async (context) => {
    const inside = spawnSync('unshare', ['--pid', '--fork', '--mount-proc', 'true']);
    if (inside.status !== 0) return context.skip('this machine does not allow process namespaces (unshare --pid)');
    const home = all.newHome();
    const node = join(home.path, 'node-of-another-machine');
    writeFileSync(node, `#!/bin/sh\nexec unshare --pid --fork --mount-proc --kill-child '${process.execPath}' "$@"\n`);
    chmodSync(node, 0o755);
    const a = await all.serve(home, { node });
    const running = await prompt(a.caller, '/say Here.\n/hang');
    await eventsUntil(a.caller, 'turn.update');
    const b = await all.serve(all.newHome());
    a.running.kill('SIGKILL');
    await rows('UPDATE leases SET ready_at = ready_at + 3600000 WHERE worker IS NOT NULL'); // longer than this test may take
    await a.running.ended;
    // Meanwhile the other server runs two turns, so it has looked for dead holders.
    for (const key of ['one', 'two']) {
      const { turn } = await b.caller.ok('POST', `/conversations/${key}/turns`, { prompt: 'hello' });
      await b.caller.finished(turn);
    }
    expect(await b.caller.ok('GET', `/turns/${running.id}`)).toMatchObject({ state: 'running' });
    await rows('UPDATE leases SET ready_at = 0 WHERE worker IS NOT NULL AND pending > 0');
    await until(
      'the other server has taken over',
      async () => (await b.caller.ok('GET', `/turns/${running.id}`)).state === 'interrupted',
    );
  });

  test('take over from one that has lost its connection after that one has ended its agent', (context) =>
    process.env.THROUGHLINE_LONG === '1' ? cutOff() : context.skip('takes as long as a lease: npm run test:long'));

  test('run the turns of a data home that does not reach their directories; without them its turns are refused', async () => {
    const a = await all.serve(all.newHome());
    await a.caller.finished(await prompt(a.caller, 'The codeword is osprey'));
    const other = all.newHome({ alone: true });
    expect(await other.ok('send', 'notes', 'Which codewords have you seen?')).toContain('osprey');
    a.running.kill('SIGTERM');
    await a.running.ended;
    const refused = await other.run('send', 'notes', 'And now?');
    expect(refused.stderr).toMatch(/"notes" runs only at the data home .*fork the conversation/s);
    expect(refused.code).not.toBe(0);
  });

  test('can move a conversation from a data home that is gone to another one, without its files', async () => {
    const gone = all.newHome({ alone: true });
    const a = await all.serve(gone);
    await a.caller.finished(await prompt(a.caller, '/tool write work.txt\nThe codeword is osprey'));
    const b = await all.serve(all.newHome({ alone: true }));
    expect((await b.caller.ask('POST', '/conversations/notes/move')).status, 'its server is running').toBe(409);
    a.running.kill('SIGKILL');
    await a.running.ended;
    rmSync(gone.path, { recursive: true });
    const refused = await b.caller.ask('POST', '/conversations/notes/turns', { prompt: 'And now?' });
    expect(refused).toMatchObject({ status: 422, body: { detail: expect.stringMatching(/"notes" runs only at/) } });
    const stranded = { reason: 'other_home', hint: expect.stringContaining('throughline move') };
    expect((await b.caller.ok('GET', '/conversations')).conversations[0]).toMatchObject({ stranded });
    const { findings } = await b.caller.ok('GET', '/doctor');
    expect(findings.map(({ check }: { check: string }) => check)).toContain('places');

    expect(await b.caller.ok('POST', '/conversations/notes/move')).toMatchObject({ stranded: null, cwd: null });
    const [moved] = await eventsUntil(b.caller, 'conversation.moved').then((events) => events.slice(-1));
    expect(moved.payload).toMatchObject({ from: join(gone.path, 'home') });
    expect((await b.caller.finished(await prompt(b.caller, 'Which codewords have you seen?'))).reply).toContain(
      'osprey',
    );
    await b.caller.finished(await prompt(b.caller, 'hello'));
    const { receipts } = await b.caller.ok('GET', '/conversations/notes/sessions');
    expect(receipts[1]).toMatchObject({ rung: 'transcript', carried: 1, filesLeft: join(gone.path, 'home') });
    expect(receipts[2], 'only the first receipt says it').not.toHaveProperty('filesLeft');
    expect((await b.caller.ok('GET', '/conversations/notes/files')).paths).toEqual([]);
    expect(await b.caller.ok('GET', '/conversations/notes/verify')).toMatchObject({ broken: null });
  });

  test('with sandbox.moveHere take over the conversations of a dead one, also in the middle of a turn', async () => {
    const a = await all.serve(all.newHome({ alone: true }));
    await a.caller.finished(await prompt(a.caller, 'The codeword is osprey'));
    const endOfFirst = (await eventsUntil(a.caller, 'turn.ended')).at(-1).seq;
    const running = await prompt(a.caller, '/say Here.\n/hang');
    await eventsUntil(a.caller, 'turn.update', endOfFirst);
    const b = await all.serve(all.newHome({ alone: true, moveHere: true }));
    a.running.kill('SIGKILL');
    await a.running.ended;
    const ended = async () => (await b.caller.ok('GET', `/turns/${running.id}`)).state === 'interrupted';
    await until('the other server has ended its turn', ended);
    expect((await b.caller.finished(await prompt(b.caller, 'Which codewords have you seen?'))).reply).toContain(
      'osprey',
    );
    const { receipts } = await b.caller.ok('GET', '/conversations/notes/sessions');
    expect(receipts.at(-1)).toMatchObject({ filesLeft: expect.any(String) });
  });
}

/** Takes as long as a lease. The connections of the first server stay open, but no data passes through them. */
async function cutOff(): Promise<void> {
  await using network = await Network.to(join(postgres().folder, 'socket/.s.PGSQL.5432'));
  const a = await all.serve(all.newHome(), { env: { THROUGHLINE_STORE: network.url(postgres().url(database)) } });
  // A long reply, so that the connection is cut while the server stores it.
  const running = await prompt(a.caller, `/say ${'word '.repeat(4_000)}`, { agent: 'slow' });
  await eventsUntil(a.caller, 'turn.update');
  const b = await all.serve(all.newHome());
  const [{ sent }] = (await rows('SELECT sent FROM turns')) as [{ sent: string }];
  const { pid } = JSON.parse(JSON.parse(sent).process.id);
  const isGone = () => !existsSync(`/proc/${pid}`);
  expect(isGone()).toBe(false);
  network.cut();
  await until('its agent has ended', isGone);
  expect(await rows('SELECT epoch::int FROM leases'), 'the other server has not taken over yet').toEqual([
    { epoch: 1 },
  ]);
  await until(
    'the other server has taken over',
    async () => (await b.caller.ok('GET', `/turns/${running.id}`)).state === 'interrupted',
  );
  network.heal();
  const answer = await a.caller.finished(await prompt(a.caller, 'hello', { agent: 'scripted' }));
  expect(answer.turn.state).toBe('completed');
  expect(await rows('SELECT count(*)::int FROM turns')).toEqual([{ count: 2 }]);
}
