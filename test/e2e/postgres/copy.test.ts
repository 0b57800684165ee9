import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { copyStore } from '../../../src/backup.ts';
import type { Store } from '../../../src/ports/store.ts';
import { openPostgresStore } from '../../../src/stores/postgres/store.ts';
import { TABLES } from '../../../src/stores/shared/copy/tables.ts';
import { openAt } from '../../contracts/sqlite-folder.ts';
import { begun, update } from '../../contracts/store/world.ts';
import { until } from '../../faults/harness/until.ts';
import { NO_POSTGRES, postgresServer } from '../../postgres/server.ts';
import { CliHome } from '../cli/process.ts';
import { serveProcess } from '../http/support/served-process.ts';

// `throughline store copy`: the real executable copies everything from SQLite to PostgreSQL and back.

const postgres = postgresServer();
let home: CliHome;
let file: string;
let database: string;
beforeEach(async () => {
  home = new CliHome();
  file = join(home.path, 'home', 'throughline.db');
  if (NO_POSTGRES === null) database = await postgres().database();
});
afterEach(() => home.remove());

const url = () => postgres().url(database);
const rows = (sql: string, values: unknown[] = []) => postgres().query(sql, values, database);
const copy = async (from: string, to: string) => (await home.lines('store', 'copy', from, to))[0];

if (NO_POSTGRES === null) describe('throughline store copy', copies);
else test('throughline store copy', (context) => context.skip(NO_POSTGRES ?? ''));

/** Everything of the owner that can be read from a store. */
async function everything(store: Store) {
  const owner = 'local';
  const conversations = await store.listConversations(owner, { limit: 100 });
  const all = [];
  for (const { id, logId: _, ...conversation } of conversations) {
    const turns = await store.turns(owner, id, { after: 0, limit: 100 });
    all.push({
      ...{ id, conversation, turns },
      told: await Promise.all(turns.map((turn) => store.told(owner, turn.id))),
      events: await store.events(owner, id, { after: 0, limit: 10_000 }),
      records: await store.recordsAfter(owner, id, { after: 0, limit: 100 }),
      sessions: await store.sessions(owner, id),
      receipts: await store.receipts(owner, id),
      permissions: await store.permissions(owner, { conversation: id }),
      chain: await store.verify(owner, id),
    });
  }
  return {
    all,
    // Both stores find the same, but in another order.
    found: (await store.search(owner, 'osprey', 10)).map(({ conversation, n }) => `${conversation} ${n}`).toSorted(),
    named: (await store.search(owner, 'Birds', 10)).map(({ conversation }) => conversation).toSorted(),
    usage: await store.usage(owner),
    keys: await store.keys(owner),
    tasks: await store.tasks.list(owner, {}, { limit: 10 }),
    board: await store.tasks.events(owner, { after: 0, limit: 100 }),
    spent: await store.tasks.usage(owner),
  };
}

async function everythingAt(open: Promise<Store>) {
  const store = await open;
  try {
    return await everything(store);
  } finally {
    await store.close();
  }
}

const LONG = 'x'.repeat(20_000);

function copies(): void {
  test('copies every table of a store', async () => {
    await (await openPostgresStore({ url: url() })).close();
    const tables = await rows("SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'");
    const names = tables.map(({ table_name }) => table_name);
    // Processes, one-time links, the version of the schema, and the search index, which is made from the records.
    const notCopied = ['workers', 'sign_in_links', 'schema_version', 'words'];
    expect(names.filter((name) => !notCopied.includes(name as string)).toSorted()).toEqual(
      TABLES.map(({ name }) => name).toSorted(),
    );
  });

  test('copies while a server writes, completes the copy after the server has ended, and copies back what was added there', async () => {
    const { caller, running } = await serveProcess(home);
    const prompt = async (key: string, text: string, more: object = {}) =>
      (await caller.ok('POST', `/conversations/${key}/turns`, { prompt: text, ...more })).turn;
    await caller.finished(await prompt('notes', 'The codeword is osprey', { requestId: 'first' }));
    await caller.finished(await prompt('notes', `${LONG} is long`));
    await caller.finished(await prompt('gone', 'The secret is wryneck'));
    await caller.ok('PATCH', '/conversations/notes', { title: 'Birds' });
    await caller.ok('POST', '/conversations/notes/fork', { key: 'other' });
    const [{ key }] = await home.lines('keys', 'create', 'phone');
    const { tasks } = await caller.ok('POST', '/tasks', { plan: { name: 'errand', goal: 'hello' } });
    await until('the task is done', async () => (await caller.ok('GET', `/tasks/${tasks[0].id}`)).state === 'done');

    const hanging = await prompt('busy', '/say Here.\n/hang');
    const writing = [0, 1, 2].map(async (n) => caller.finished(await prompt(`more-${n}`, '/stream 200 1')));
    const first = await copy(join(home.path, 'home'), url());
    expect(first).toMatchObject({ complete: false, broken: [], from: file });
    const refused = await home.run('list', '--embedded', '--store', url());
    expect(refused).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/copy that was not finished[\s\S]*store copy/),
    });
    await Promise.all(writing);
    await caller.ok('POST', `/turns/${hanging.id}/cancel`);
    await caller.finished(hanging);
    await caller.ok('DELETE', '/conversations/gone');
    running.kill('SIGTERM');
    await running.ended;

    const ended = await home.run('store', 'copy', `sqlite:${file}`, url());
    expect(ended).toMatchObject({ code: 0, stdout: expect.stringMatching(/^copied: 7 conversations, /) });
    expect(ended.stderr).toMatch(/7 conversations with files at .*: they continue only there/);
    await home.ok('store', 'reopen', `sqlite:${file}`);
    const before = await everythingAt(openAt(file));
    expect(await everythingAt(openPostgresStore({ url: url() }))).toEqual(before);
    expect(before.found).not.toEqual([]);
    expect(before.named).not.toEqual([]);
    const erased = await rows(
      "SELECT 1 FROM events e LEFT JOIN turns t ON t.no = e.turn WHERE e.payload LIKE '%wryneck%' OR t.prompt LIKE '%wryneck%'",
    );
    expect(erased, 'what was erased after the first copy').toEqual([]);
    expect(await rows("SELECT 1 FROM words WHERE lexemes @@ 'wryneck'::tsquery")).toEqual([]);

    const onPostgres = await serveProcess(home, '--store', url());
    const next = await onPostgres.caller.ok('POST', '/conversations/notes/turns', {
      prompt: 'Which codewords have you seen?',
    });
    expect((await onPostgres.caller.finished(next.turn)).reply).toContain('osprey');
    const { receipts } = await onPostgres.caller.ok('GET', '/conversations/notes/sessions');
    expect(receipts.at(-1)).toMatchObject({ rung: 'resume' });
    const again = await onPostgres.caller.ok('POST', '/conversations/notes/turns', {
      prompt: 'The codeword is osprey',
      requestId: 'first',
    });
    expect(again).toMatchObject({ duplicate: true });
    expect((await onPostgres.caller.with({ authorization: `Bearer ${key}` }).get('/conversations')).status).toBe(200);
    const back = join(home.path, 'back.db');
    expect(await copy(url(), `sqlite:${back}`), 'its server is running').toMatchObject({ complete: false });
    onPostgres.running.kill('SIGTERM');
    await onPostgres.running.ended;
    expect(await copy(url(), `sqlite:${back}`)).toMatchObject({ complete: true, conversations: 7 });
    await home.ok('store', 'reopen', url());
    expect(await everythingAt(openAt(back))).toEqual(await everythingAt(openPostgresStore({ url: url() })));
    expect(await home.ok('send', 'notes', 'Which codewords have you seen?', '--store', `sqlite:${back}`)).toContain(
      'osprey',
    );
    expect(await home.run('doctor', '--store', `sqlite:${back}`)).toMatchObject({ code: 0 });
  });

  test('continues a copy that was killed in the middle, in both directions', async () => {
    await home.ok('send', 'a', 'The codeword is osprey');
    await home.ok('send', 'b', 'The codeword is wren');
    await (await openPostgresStore({ url: url() })).close();
    const back = join(home.path, 'back.db');
    for (const [from, to, mode] of [
      [`sqlite:${file}`, url(), 'SHARE'],
      [url(), `sqlite:${back}`, 'ACCESS EXCLUSIVE'],
    ] as const) {
      const other = await postgres().connect(database);
      await other.query(`BEGIN; LOCK TABLE records IN ${mode} MODE`);
      const killed = home.start(['store', 'copy', from, to]);
      await until(
        'the copy waits for the lock',
        async () => (await rows("SELECT 1 FROM pg_stat_activity WHERE wait_event = 'relation'")).length > 0,
      );
      killed.kill('SIGKILL');
      await killed.ended;
      await other.end();
      const connections = "SELECT 1 FROM pg_stat_activity WHERE application_name = 'throughline copy'";
      await until('the connection of the killed copy has ended', async () => (await rows(connections)).length === 0);
      if (to === url()) {
        expect(await rows('SELECT count(*)::int AS n FROM turns'), 'a part of the copy is there').toEqual([{ n: 2 }]);
        swapKeys();
      }
      expect(await copy(from, to)).toMatchObject({ complete: true, conversations: 2, turns: 2 });
    }
    for (const moved of [`sqlite:${file}`, url()]) await home.ok('store', 'reopen', moved);
    expect(await everythingAt(openAt(back))).toEqual(await everythingAt(openAt(file)));
    expect(await home.ok('send', 'a', 'Which codewords have you seen?', '--store', url())).toContain('wren');
  });

  test('refuses to mix a copy with other data', async () => {
    const sqlite = `sqlite:${file}`;
    const refusal = (from: string, to: string) => copyStore({ from, to }).catch((error: Error) => error.message);
    expect(await refusal(sqlite, url())).toMatch(/no data in/);
    await home.ok('send', 'a', 'hello');
    expect(await refusal(sqlite, `sqlite:${file}2`)).toMatch(/the same kind/);
    expect(existsSync(`${file}2`)).toBe(false);

    const store = await openPostgresStore({ url: url() });
    expect(await refusal(sqlite, url())).toBe('Servers or commands use the target.');
    await store.createKey('ann', { id: 'k', name: 'k', scopes: [], owners: null, hash: 'h', expiresAt: null });
    await store.close();
    expect(await refusal(sqlite, url())).toBe('The target has data already.');

    database = await postgres().database();
    const open = new DatabaseSync(file);
    open.prepare('SELECT count(*) FROM turns').get();
    expect(await copy(sqlite, url())).toMatchObject({ complete: false });
    open.close();
    const other = join(home.path, 'other.db');
    await (await openAt(other)).close();
    expect(await refusal(`sqlite:${other}`, url())).toBe('The target holds an unfinished copy of another store.');
    expect(await refusal(url(), `sqlite:${file}3`)).toBe('The store is a copy that was not finished.');
    const reopened = await home.run('store', 'reopen', url());
    expect(reopened).toMatchObject({ code: 2, stderr: expect.stringContaining('is a copy that was not finished') });
    expect(await copy(sqlite, url())).toMatchObject({ complete: true });
    expect(await refusal(sqlite, url())).toBe('The target is a copy of this store that was finished before.');
  });

  test('after a complete copy the source is refused, until it is reopened, and the copied store is named', async () => {
    await home.ok('send', 'a', 'The codeword is osprey');
    const copied = await home.run('store', 'copy', join(home.path, 'home'), url());
    expect(copied.stderr).toContain(`store reopen ${join(home.path, 'home')}"`);
    // The store is named without a password, and another spelling of the file does not help.
    const named = `--store '?postgres://throughline@`;
    for (const args of [
      ['list'],
      ['send', 'a', 'more'],
      ['doctor'],
      ['list', '--store', `sqlite:${home.path}/./home/throughline.db`],
    ]) {
      const { code, stderr } = await home.run(...args);
      expect(code).toBe(2);
      expect(stderr).toMatch(new RegExp(`was copied to postgres:[\\s\\S]*${named}[\\s\\S]*throughline store reopen`));
    }
    const { stderr } = await home.run('serve', '--port', '0');
    expect(stderr).toContain('was copied to postgres:');
    const elsewhere = await postgres().database();
    const third = await home.run('store', 'copy', `sqlite:${file}`, postgres().url(elsewhere));
    expect(third).toMatchObject({ code: 2, stderr: expect.stringContaining('was copied to postgres:') });
    expect(await home.ok('send', 'a', 'Which codewords have you seen?', '--store', url())).toContain('osprey');

    // A backup of the old data is a store of its own.
    const saved = join(home.path, 'saved.db');
    await home.ok('backup', saved);
    const other = join(home.path, 'other');
    await home.ok('restore', saved, '--home', other);
    expect(await home.lines('list', '--home', other)).toMatchObject([{ key: 'a', head: 1 }]);

    const reopened = await home.ok('store', 'reopen', join(home.path, 'home'));
    expect(reopened).toContain('continues separately');
    expect(await home.lines('list')).toMatchObject([{ key: 'a', head: 1 }]);
    expect(await home.ok('store', 'reopen', join(home.path, 'home'))).toContain('It was not copied to another store.');
  });

  test('a copy that is killed right before its end leaves both stores refused, and the same command completes it', async () => {
    const sqlite = `sqlite:${file}`;
    await home.ok('send', 'a', 'The codeword is osprey');
    const open = new DatabaseSync(file);
    open.prepare('SELECT count(*) FROM turns').get();
    expect(await copy(sqlite, url())).toMatchObject({ complete: false });
    open.close();
    expect(await home.lines('list'), 'a copy that is not complete is no successor').toHaveLength(1);
    // Nothing has changed since, so the first change waits for this lock: it is the end of the copy, after the source got its successor.
    const other = await postgres().connect(database);
    await other.query('BEGIN; LOCK TABLE leases IN SHARE MODE');
    const killed = home.start(['store', 'copy', sqlite, url()]);
    await until(
      'the copy waits for the lock',
      async () => (await rows("SELECT 1 FROM pg_stat_activity WHERE wait_event = 'relation'")).length > 0,
    );
    killed.kill('SIGKILL');
    await killed.ended;
    await other.end();
    expect((await home.run('list')).stderr).toContain('was copied to postgres:');
    expect((await home.run('list', '--store', url())).stderr).toContain('a copy that was not finished');
    expect(await copy(sqlite, url())).toMatchObject({ complete: true });
    expect(await home.lines('list', '--store', url())).toMatchObject([{ key: 'a', head: 1 }]);
  });

  test('copies 100,000 events there and back', async (context) => {
    if (process.env.THROUGHLINE_LONG !== '1') return context.skip('takes a minute or more: npm run test:long');
    await home.ok('send', 'first', 'hello');
    const store = await openAt(file);
    for (let i = 0; i < 200; i += 1) {
      const { turn, holder } = await begun(store);
      const words = Array.from({ length: 500 }, (_, n) => update(turn.id, `${n} ${'word '.repeat(30)}`));
      while (words.length > 0) await holder.write(...words.splice(0, 50));
    }
    await store.close();
    const back = join(home.path, 'back.db');
    for (const [from, to] of [
      [`sqlite:${file}`, url()],
      [url(), `sqlite:${back}`],
    ] as const) {
      const began = performance.now();
      const { complete, events } = await copy(from, to);
      const seconds = (performance.now() - began) / 1_000;
      console.log(
        `${events} events to ${to.split(':')[0]}: ${seconds.toFixed(1)} s, ${(events / seconds).toFixed(0)} a second`,
      );
      expect(complete).toBe(true);
      expect(events).toBeGreaterThan(100_000);
    }
  });

  test('refuses a password in the arguments, and does not print it', async () => {
    const secret = randomUUID();
    const wrong: readonly (readonly [RegExp, string, string, ...string[]])[] = [
      [/could see the password in TO[\s\S]*PGPASSWORD/, 'here', postgres().url(database, 'throughline', secret)],
      [/could see the password in FROM/, `postgres://localhost/x?password=${secret}`, 'here'],
      [/TO must be "sqlite:FILE"/, 'here', `pg2://ann:${secret}@localhost/x`],
      [/--store cannot be used/, 'here', url(), '--store', url()],
    ];
    await Promise.all(
      wrong.map(async ([why, ...args]) => {
        const { code, stdout, stderr } = await home.run('store', 'copy', ...args);
        expect({ code, stdout, stderr }).toEqual({ code: 2, stdout: '', stderr: expect.stringMatching(why) });
        expect(stderr).not.toContain(secret);
      }),
    );
  });
}

/** Swaps the keys of two conversations. Keys are unique, so neither of the two rows can be written before the other. */
function swapKeys(): void {
  const db = new DatabaseSync(file);
  for (const [from, to] of [
    ['a', 'x'],
    ['b', 'a'],
    ['x', 'b'],
  ]) {
    db.prepare('UPDATE conversations SET key = ? WHERE key = ?').run(to as string, from as string);
  }
  db.close();
}
