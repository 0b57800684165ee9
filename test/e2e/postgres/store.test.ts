import { randomUUID } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { open } from '../../../src/index.ts';
import { NO_POSTGRES, postgresServer } from '../../postgres/server.ts';
import { AGENTS } from '../cli/agents.ts';
import { CliHome, type Ended } from '../cli/process.ts';
import { serveProcess } from '../http/support/served-process.ts';

// PostgreSQL as the store of the real executable, and of the library.

const postgres = postgresServer();
let home: CliHome;
beforeEach(() => {
  home = new CliHome();
});
afterEach(() => home.remove());

if (NO_POSTGRES === null) describe('the store postgres://…', store);
else test('the store postgres://…', (context) => context.skip(NO_POSTGRES ?? ''));

const database = async () => postgres().url(await postgres().database());

/** Runs a command with this store in its environment. */
const withStore = (url: string, ...args: string[]) => home.start(args, { env: { THROUGHLINE_STORE: url } }).ended;

function store(): void {
  test('has everything of a server; a backup is refused with the reason; if it is read-only, a server still shows its data', async () => {
    const name = await postgres().database();
    const url = postgres().url(name);
    const { caller, running, token } = await serveProcess(home, '--store', url);
    const { turn } = await caller.ok('POST', '/conversations/notes/turns', { prompt: 'The codeword is osprey' });
    expect((await caller.finished(turn)).reply).toContain('osprey');
    expect((await caller.ok('GET', '/search?q=osprey')).hits).toHaveLength(1);
    expect(await caller.ok('GET', '/conversations/notes/verify')).toMatchObject({ broken: null });
    expect(await caller.ok('GET', '/doctor')).toMatchObject({ findings: [] });
    const { details } = await caller.ok('GET', '/health?details=true');
    expect(details.store.connections).toMatchObject({ most: 10, waiting: 0 });
    expect((await caller.get('//metrics')).body).toMatch(/^throughline_store_connections\{state="idle"\} \d+$/m);
    const backup = await caller.get('//backup');
    expect(backup).toMatchObject({ status: 422, body: { detail: expect.stringContaining('PostgreSQL') } });
    expect(existsSync(join(home.path, 'home', 'throughline.db'))).toBe(false);

    // Commands of other data homes use the same conversations: directly, or through the server with a key from the database.
    const [{ key }] = await home.lines('keys', 'create', 'phone', '--store', url);
    expect((await caller.with({ authorization: `Bearer ${key}` }).get('/conversations')).status).toBe(200);
    expect(token).not.toBe(key);
    const refused = await home.run('list', '--store', url);
    expect(refused.stderr).toContain('so --store cannot be used');
    running.kill('SIGTERM');
    expect(await running.ended).toMatchObject({ code: 0 });
    const [listed] = await home.lines('list', '--store', url);
    expect(listed).toMatchObject({ key: 'notes', head: 1 });
    const saved = await home.run('backup', join(home.path, 'saved.db'), '--store', url);
    expect(saved.stderr).toMatch(/no backups of a PostgreSQL database[\s\S]*pg_dump/);
    expect(await home.run('doctor', '--store', url)).toMatchObject({ code: 0 });

    // A server on a read-only database starts, but has no sign-in link, because it cannot store one.
    await postgres().query(`ALTER DATABASE ${name} SET default_transaction_read_only = on`);
    const readOnly = await serveProcess(home, '--store', url);
    expect(readOnly.link).toBeNull();
    await readOnly.running.until('stderr', /"code":"storage_readonly".*"something does not work"/);
    expect((await readOnly.caller.ok('GET', '/conversations')).conversations).toHaveLength(1);
  });

  test('is named in the settings, in the environment, which comes first, or as an option of open()', async () => {
    const [first, second] = [await database(), await database()];
    home.configure({ store: first, defaultAgent: 'scripted', agents: AGENTS });
    await home.ok('send', 'notes', 'The codeword is osprey');
    expect(await withStore(second, 'list', '--json')).toMatchObject({ code: 0, stdout: '', stderr: '' });
    expect(await home.ok('send', 'notes', 'Which codewords have you seen?')).toContain('osprey');
    const settings = { defaultAgent: 'scripted', agents: { scripted: { adapter: 'scripted' } } } as const;
    await using tl = await open({ home: join(home.path, 'home'), settings, store: first });
    expect((await tl.conversation('notes').ask('Which codewords have you seen?')).reply).toContain('osprey');
  });

  test('is not upgraded from an older version by a command that only reads, which says what does', async () => {
    const name = await postgres().database();
    const url = postgres().url(name);
    home.configure({ store: url, defaultAgent: 'scripted', agents: AGENTS });
    await home.ok('send', 'notes', 'The codeword is osprey');
    // Undoes the last migration, so that the tables are those of the previous version.
    const downgrade = [
      'DROP INDEX conversations_put_away',
      'ALTER TABLE conversations DROP COLUMN pinned, DROP COLUMN put_away, DROP COLUMN project',
      'ALTER TABLE sessions DROP COLUMN context',
      'ALTER TABLE permissions DROP COLUMN answered_from',
    ];
    await postgres().query([...downgrade, 'UPDATE schema_version SET version = 3'].join('; '), [], name);
    const version = async () => (await postgres().query('SELECT version FROM schema_version', [], name))[0]?.version;
    const readingCommands = [
      ['list'],
      ['show', 'notes'],
      ['verify', 'notes'],
      ['export', 'notes'],
      ['search', 'osprey'],
      ['doctor'],
    ];
    for (const args of readingCommands) {
      const { code, stderr } = await home.run(...args);
      expect({ args, code, stderr }).toMatchObject({
        code: expect.toSatisfy((one) => one > 0),
        stderr: expect.stringMatching(/schema 3 of an older Throughline[\s\S]*throughline serve/),
      });
    }
    expect(await version()).toBe(3);
    await home.ok('send', 'notes', 'hello');
    expect(await version()).toBe(4);
    expect(await home.ok('list')).toContain('notes');
  });

  test('that cannot be opened gives the reason, and never the password', async () => {
    const secret = randomUUID();
    const role = `r_${secret.slice(0, 8)}`;
    await postgres().query(`CREATE ROLE ${role} LOGIN PASSWORD '${secret}'`);
    const rules = join(postgres().folder, 'data/pg_hba.conf');
    writeFileSync(rules, `local all ${role} scram-sha-256\n${readFileSync(rules, 'utf8')}`);
    // PostgreSQL does not end a login that was left open, so the commands have to.
    await postgres().query("ALTER SYSTEM SET authentication_timeout = '10min'");
    await postgres().query('SELECT pg_reload_conf()');
    const empty = await postgres().database();
    const urlWith = (password: string, name = empty) => postgres().url(name, role, password);
    const latin = await postgres().database(`OWNER ${role} ENCODING LATIN1 TEMPLATE template0`);
    const wrong: readonly (readonly [string, RegExp])[] = [
      [urlWith(`${secret}x`), /wrong user or password/],
      [postgres().url(empty, role), /demands a password[\s\S]*PGPASSWORD[\s\S]*~\/\.pgpass/],
      [urlWith(secret), /may not create or write the tables/],
      [urlWith(secret, 'no_such'), /no such database/],
      [urlWith(secret, latin), /encoding LATIN1, and needs UTF8/],
      [`postgres://${role}:${secret}@127.0.0.1:1/x`, /does not answer/],
      [`postgres://${role}:${secret}@[/x`, /cannot be opened/],
      [`pg://${role}:${secret}@localhost/x`, /"THROUGHLINE_STORE" must be "sqlite:PATH" or "postgres:/],
    ];
    const ended = await Promise.all(
      wrong.map(([url, why]) => withStore(url, 'list').then((end): [Ended, RegExp] => [end, why])),
    );
    for (const [{ code, stdout, stderr }, why] of ended) {
      expect({ code, stderr }).toMatchObject({
        code: expect.toSatisfy((one) => one > 0),
        stderr: expect.stringMatching(why),
      });
      expect(stdout + stderr).not.toContain(secret);
    }
    const served = await withStore(urlWith(`${secret}x`), 'serve', '--port', '0', '--log-level', 'debug');
    expect(served).toMatchObject({ stderr: expect.stringMatching(/wrong user or password/) });
    expect(served.stderr).not.toContain(secret);
    const argument = await home.run('list', '--store', urlWith(secret));
    expect(argument.stderr).toMatch(/could see the password in --store[\s\S]*PGPASSWORD/);
    expect(argument.stderr).not.toContain(secret);
    const fromEnvironment = home.start(['list', '--store', postgres().url(latin, role)], {
      env: { PGPASSWORD: secret },
    });
    expect((await fromEnvironment.ended).stderr).toMatch(/LATIN1/);
  });

  test('whose password is in a password file is opened without a warning', async () => {
    const secret = randomUUID();
    const role = `r_${secret.slice(0, 8)}`;
    await postgres().query(`CREATE ROLE ${role} LOGIN PASSWORD '${secret}'`);
    const rules = join(postgres().folder, 'data/pg_hba.conf');
    writeFileSync(rules, `local all ${role} scram-sha-256\n${readFileSync(rules, 'utf8')}`);
    await postgres().query('SELECT pg_reload_conf()');
    const file = join(home.path, 'pgpass');
    const line = (password: string) => writeFileSync(file, `*:*:*:${role}:${password}\n`, { mode: 0o600 });
    const store = postgres().url(await postgres().database(`OWNER ${role}`), role);
    const sent = () =>
      home.start(['send', 'notes', 'hello', '--quiet'], { env: { THROUGHLINE_STORE: store, PGPASSFILE: file } }).ended;
    line(secret);
    expect(await sent()).toMatchObject({ code: 0, stderr: '' });
    line('another');
    expect((await sent()).stderr).toContain('wrong user or password');
  });
}
