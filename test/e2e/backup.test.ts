import {
  appendFileSync,
  closeSync,
  copyFileSync,
  existsSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  watch,
  writeFileSync,
} from 'node:fs';
import { createServer, get } from 'node:http';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, onTestFinished, test, vi } from 'vitest';
import { backupHome, receiveBackup, restoreHome } from '../../src/backup.ts';
import { connectTo } from '../../src/connect.ts';
import { open } from '../../src/index.ts';
import type { BackupProgress } from '../../src/ports/store/backup.ts';
import { MIGRATIONS } from '../../src/stores/sqlite/migrations/list.ts';
import { INTERFACE } from '../../src/wire/operations/operation.ts';
import { placeIn, schemaOf, writeOlder } from '../contracts/older-database.ts';
import { openAt, temporaryFolder } from '../contracts/sqlite-folder.ts';
import { smallDisk } from '../faults/full-disk/small-disk.ts';
import { CliHome } from './cli/process.ts';
import { serveProcess } from './http/support/served-process.ts';

const SETTINGS = { agents: { ant: { adapter: 'scripted' } }, defaultAgent: 'ant' } as const;

async function openHome(home: string) {
  const tl = await open({ home, settings: SETTINGS });
  onTestFinished(() => tl.close());
  return tl;
}

/** Makes a data home with one conversation of two turns, closes it, and makes a backup of it. */
async function backedUp({ sandboxes = false, link = false } = {}) {
  const folder = temporaryFolder();
  const home = join(folder, 'home');
  const file = join(folder, sandboxes ? 'backup.tar' : 'backup.db');
  const tl = await openHome(home);
  await tl.conversation('notes').ask('The codeword is amber-heron');
  await tl.conversation('notes').ask('/tool write work.txt\nThe codeword is osprey');
  await tl.close();
  if (link) {
    const store = await openAt(join(home, 'throughline.db'));
    await store.createLink('local', { hash: 'hash', scopes: ['read'], grantEnds: null, validMs: 3_600_000, most: 9 });
    await store.close();
  }
  await backupHome({ home, file, force: false, sandboxes });
  return { folder, home, file };
}

const restore = (home: string, file: string, set: { moveHere?: boolean; force?: boolean } = {}) =>
  restoreHome({ home, file, moveHere: false, force: false, ...set });
const codeOf = (work: Promise<unknown>) =>
  work.then(
    () => null,
    (error) => error.code,
  );
/** The log id and the losses of a closed data home, and what its one-time link grants. Using the link makes it invalid. */
async function logOf(home: string) {
  const store = await openAt(join(home, 'throughline.db'));
  const log = { id: await store.log(), losses: await store.losses(), link: await store.takeLink('hash') };
  await store.close();
  return log;
}

const contents = (file: string) => readFileSync(file).toString('latin1');

test('a backup made while a server runs turns is complete and intact, and only this user can read it', async () => {
  const cli = new CliHome();
  onTestFinished(() => cli.remove());
  const server = await serveProcess(cli);
  const submitted: string[] = [];
  let stop = false;
  const writing = Array.from({ length: 4 }, async (_, index) => {
    while (!stop) {
      const path = `/conversations/c${index}/turns`;
      const { turn } = await server.caller.ok('POST', path, { prompt: '/stream 20 2', permissions: 'deny' });
      submitted.push(turn.id);
      await server.caller.ok('GET', `/turns/${turn.id}/answer?wait=30`);
    }
  });
  while (submitted.length < 12) await new Promise((resolve) => setTimeout(resolve, 20));
  const file = join(cli.path, 'copy.db');
  for (let round = 0; round < 3; round += 1) {
    const accepted = [...submitted];
    const [backup] = await cli.lines('backup', file, ...(round > 0 ? ['--force'] : []));
    expect(backup).toMatchObject({ file, schema: MIGRATIONS.length, conversations: 4, broken: [], sandboxes: false });
    const copy = new DatabaseSync(file, { readOnly: true });
    expect(copy.prepare('PRAGMA integrity_check').get()).toEqual({ integrity_check: 'ok' });
    const turns = new Set(
      copy
        .prepare('SELECT id FROM turns')
        .all()
        .map(({ id }) => id),
    );
    expect(accepted.filter((id) => !turns.has(id))).toEqual([]);
    expect(backup.turns).toBe(turns.size);
    copy.close();
  }
  stop = true;
  await Promise.all(writing);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(readdirSync(cli.path).filter((name) => name.includes('partial'))).toEqual([]);
});

test('a backup replaces an existing file only with force, and a failed backup leaves no file', async () => {
  const { folder, home, file } = await backedUp();
  const request = { home, file, force: false, sandboxes: false };
  const before = contents(file);
  expect(await codeOf(backupHome(request))).toBe('conflict');
  expect(contents(file)).toBe(before);
  await backupHome({ ...request, force: true });
  expect(await codeOf(backupHome({ ...request, file: folder, force: true }))).toBe('conflict');
  expect(await codeOf(backupHome({ ...request, file: join(folder, 'no', 'such', 'folder') }))).toBe('invalid');
  expect(await codeOf(backupHome({ ...request, home: join(folder, 'empty'), file: join(folder, 'b2') }))).toBe(
    'not_found',
  );
  const aborted = AbortSignal.abort(new Error('no'));
  await expect(backupHome({ ...request, file: join(folder, 'b3'), signal: aborted })).rejects.toThrow('no');
  expect(readdirSync(folder).toSorted()).toEqual(['backup.db', 'home']);
});

test('a backup never replaces the data of its own data home', async () => {
  const { home } = await backedUp();
  const tl = await openHome(home);
  await tl.conversation('notes').ask('The codeword is wren');
  for (const name of ['throughline.db', 'throughline.db-wal', 'throughline.db.highwater']) {
    const request = { home, file: join(home, name), force: true, sandboxes: false };
    expect(await codeOf(backupHome(request))).toBe('conflict');
  }
  await tl.conversation('notes').ask('It goes on');
});

test('a backup of damaged data is refused, and leaves no file', async () => {
  const { folder, home } = await backedUp();
  const data = join(home, 'throughline.db');
  const bytes = readFileSync(data);
  const at = bytes.indexOf('amber-heron');
  bytes.fill(0xff, at - 2_000, at + 2_000);
  writeFileSync(data, bytes);
  const request = { home, file: join(folder, 'copy.db'), force: false, sandboxes: false };
  expect(await codeOf(backupHome(request))).toBe('storage_damaged');
  expect(readdirSync(folder).toSorted()).toEqual(['backup.db', 'home']);
});

test('a backup names an event that was changed, and is then restored only with force', async () => {
  const { folder, home } = await backedUp();
  const db = new DatabaseSync(join(home, 'throughline.db'));
  db.exec("UPDATE events SET payload = payload || ' ' WHERE seq = 13");
  db.close();
  const file = join(folder, 'changed.db');
  const backup = await backupHome({ home, file, force: false, sandboxes: false });
  expect(backup.broken).toEqual([{ conversation: expect.any(String), event: 13 }]);
  expect(await codeOf(restore(home, file))).toBe('storage_damaged');
  expect(await restore(home, file, { force: true })).toMatchObject({ broken: backup.broken });
});

test('a script sees that events were changed: backup, restore and a forced restore end with exit code 1', async () => {
  const cli = new CliHome();
  onTestFinished(() => cli.remove());
  await cli.ok('send', 'notes', 'The codeword is heron');
  const db = new DatabaseSync(join(cli.path, 'home', 'throughline.db'));
  db.exec("UPDATE events SET payload = payload || ' ' WHERE seq = 3");
  db.close();
  const said = 'event 3 of conversation';
  expect(await cli.run('backup', 'b.db')).toMatchObject({ code: 1, stderr: expect.stringContaining(said) });
  const refused = await cli.run('restore', 'b.db');
  expect(refused).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining('--force') });
  const { code, stdout, stderr } = await cli.run('restore', 'b.db', '--force');
  expect({ code, stdout }).toEqual({ code: 1, stdout: expect.stringMatching(/^restored /) });
  expect(stderr).toContain(said);
  const forced = await cli.run('restore', 'b.db', '--force', '--json');
  expect(forced.code).toBe(1);
  expect(JSON.parse(forced.stdout)).toMatchObject({ conversations: 1, broken: [{ event: 3 }] });
});

test('a backup reports its progress when it checks and when it copies sandboxes', async () => {
  const { folder, home } = await backedUp();
  const seen: BackupProgress[] = [];
  const onProgress = (progress: BackupProgress) => void seen.push(progress);
  await backupHome({ home, file: join(folder, 'b.tar'), force: false, sandboxes: true, onProgress });
  expect(seen.map(({ step }) => step)).toEqual(expect.arrayContaining(['checking', 'sandboxes']));
});

test('after a restore, a session with turns that the record lacks is not continued, and the receipt says so', async () => {
  const { home, file } = await backedUp({ link: true });
  const later = await openHome(home);
  await later.conversation('notes').ask('The codeword is secret-finch');
  await later.close();
  const before = await logOf(home);
  const restored = await restore(home, file);
  expect(restored).toMatchObject({ conversations: 1, turns: 2, elsewhere: [], moved: 0, sandboxes: false });
  // The turns that the backup lacks are no loss, but the log has a new id, so that readers notice.
  const after = await logOf(home);
  expect(after.losses).toEqual([]);
  // A link that was used does not become valid again.
  expect([before.link === null, after.link]).toEqual([false, null]);
  expect(after.id).not.toBe(before.id);
  const [kept = ''] = restored.kept;
  expect(contents(kept)).toContain('secret-finch');

  const tl = await openHome(home);
  expect((await tl.engine.turns('notes')).map(({ n }) => n)).toEqual([1, 2]);
  const { reply, receipt } = await tl.conversation('notes').ask('Which codewords have you seen?');
  expect(reply).toContain('osprey');
  expect(reply).not.toContain('finch');
  expect(receipt).toMatchObject({ rung: 'transcript', carried: 2, dropped: 0 });
  expect(receipt?.tried[0]).toMatchObject({ rung: 'resume', failure: expect.stringContaining('position') });
  expect((await tl.engine.sessions('notes')).map(({ state }) => state)).toContain('diverged');
  expect(await tl.engine.verify('notes')).toMatchObject({ broken: null });
});

test('a conversation that is restored with its sandbox continues in its own session', async () => {
  const { home, file } = await backedUp({ sandboxes: true });
  expect(statSync(file).mode & 0o777).toBe(0o600);
  const later = await openHome(home);
  await later.conversation('notes').ask('/tool write work.txt\nThe codeword is secret-finch');
  const { id } = await later.engine.conversation('notes');
  await later.close();
  const work = join(home, 'sandboxes', id, 'work', 'work.txt');
  const latest = readFileSync(work, 'utf8');
  const { kept, sandboxes } = await restore(home, file);
  expect(sandboxes).toBe(true);
  expect(latest.startsWith(readFileSync(work, 'utf8'))).toBe(true);
  expect(latest).not.toBe(readFileSync(work, 'utf8'));
  expect(readFileSync(join(kept.at(-1) as string, id, 'work', 'work.txt'), 'utf8')).toBe(latest);
  const tl = await openHome(home);
  const { reply, receipt } = await tl.conversation('notes').ask('Which codewords have you seen?');
  expect(receipt).toMatchObject({ rung: 'resume', proof: 'proved' });
  expect(reply).not.toContain('finch');
});

test('conversations that are restored into another data home can be read, and continued when they are moved there', async () => {
  const { folder, home, file } = await backedUp();
  const other = join(folder, 'other');
  const first = await restore(other, file);
  expect(first).toMatchObject({ kept: [], moved: 0, elsewhere: [{ conversations: 1 }] });
  expect(first.elsewhere[0]?.home).toContain(home);
  const reading = await openHome(other);
  expect(await reading.engine.turns('notes')).toHaveLength(2);
  expect(await codeOf(reading.conversation('notes').ask('hello'))).toBe('refused');
  await reading.close();
  expect(await restore(other, file, { moveHere: true })).toMatchObject({ moved: 1, elsewhere: [] });
  const tl = await openHome(other);
  const { reply, receipt } = await tl.conversation('notes').ask('Which codewords have you seen?');
  expect(reply).toContain('osprey');
  expect(receipt).toMatchObject({ rung: 'transcript', carried: 2 });
});

test('a restore into another data home does not disturb the running agents of the first one', async () => {
  const { folder, home } = await backedUp();
  const tl = await openHome(home);
  await tl.conversation('notes').ask('The codeword is wren'); // keeps its agent warm
  const running = tl.conversation('busy').send('/hang');
  for await (const event of running.events) if (event.kind === 'turn.sent') break;
  const file = join(folder, 'busy.db');
  await backupHome({ home, file, force: false, sandboxes: false });
  const other = join(folder, 'other');
  await restore(other, file, { moveHere: true });
  const copy = await openHome(other);
  expect(await copy.engine.turns('busy')).toMatchObject([{ state: 'interrupted' }]);
  await copy.conversation('notes').ask('hello');
  const { receipt } = await tl.conversation('notes').ask('Which codewords have you seen?');
  expect(receipt).toMatchObject({ rung: 'live' });
  const [busy] = await tl.engine.turns('busy');
  expect(busy).toMatchObject({ state: 'running' });
  await tl.engine.cancel(busy?.id ?? '');
});

test('a restore is refused while a program or a server uses the data home', async () => {
  const { home, file } = await backedUp();
  const tl = await openHome(home);
  const data = contents(join(home, 'throughline.db'));
  expect(await codeOf(restore(home, file))).toBe('conflict');
  await tl.conversation('notes').ask('It goes on');
  await tl.close();
  expect(contents(join(home, 'throughline.db'))).not.toBe(data);

  const cli = new CliHome();
  onTestFinished(() => cli.remove());
  await serveProcess(cli);
  const { code, stderr } = await cli.run('restore', file);
  expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining('A server of this data home runs') });
});

test.each([
  ['text', (file: string) => writeFileSync(file, 'no backup'), 'invalid'],
  ['a missing file', () => {}, 'not_found'],
  ['an empty database', emptyDatabase, 'invalid'],
  ['a database with a write-ahead log beside it', withLog, 'invalid'],
  ['a damaged backup', damaged, 'storage_damaged'],
  ['a backup that ends early', truncate, 'storage_damaged'],
  ['a backup of a newer version', newer, 'storage_newer'],
])('restoring %s is refused, and the data stays as it is', async (_what, make, code) => {
  const { folder, home, file } = await backedUp();
  const bad = join(folder, 'bad.db');
  if (make !== damaged && make !== truncate && make !== newer) make(bad);
  else {
    copyFileSync(file, bad);
    make(bad);
  }
  const before = readdirSync(home);
  const data = contents(join(home, 'throughline.db'));
  expect(await codeOf(restore(home, bad))).toBe(code);
  expect(contents(join(home, 'throughline.db'))).toBe(data);
  expect(readdirSync(home).filter((name) => name !== 'server')).toEqual(before);
});

function emptyDatabase(file: string): void {
  const db = new DatabaseSync(file);
  db.exec('PRAGMA journal_mode = WAL; VACUUM');
  db.close();
}

/** A database with its write-ahead log, as a killed process leaves it. */
function withLog(file: string): void {
  const db = new DatabaseSync(`${file}.used`);
  db.exec('PRAGMA journal_mode = WAL; CREATE TABLE any (a)');
  for (const end of ['', '-wal']) copyFileSync(`${file}.used${end}`, `${file}${end}`);
  db.close();
}

/** Damages an index that a restore does not read otherwise, so that only the check of all pages finds it. */
function damaged(file: string): void {
  const db = new DatabaseSync(file);
  const root = db.prepare("SELECT rootpage AS page FROM sqlite_schema WHERE name = 'permissions_owner'").get()?.page;
  db.close();
  const bytes = readFileSync(file);
  writeFileSync(file, bytes.fill(0, (Number(root) - 1) * 4_096, Number(root) * 4_096));
}

function truncate(file: string): void {
  const bytes = readFileSync(file);
  writeFileSync(file, bytes.subarray(0, bytes.length / 2));
}

function newer(file: string): void {
  const db = new DatabaseSync(file);
  db.exec('PRAGMA user_version = 999');
  db.close();
}

test('a restore of an archive that is refused because the data home is in use leaves no files', async () => {
  const { home, file } = await backedUp({ sandboxes: true });
  await openHome(home);
  expect(await codeOf(restore(home, file))).toBe('conflict');
  expect(readdirSync(home).filter((name) => name.startsWith('.restore'))).toEqual([]);
});

test('a restore replaces damaged data, and keeps the damaged file', async () => {
  const { home, file } = await backedUp();
  const data = join(home, 'throughline.db');
  writeFileSync(data, readFileSync(data).fill(0xaa, 40));
  expect(await codeOf(openHome(home))).toBe('storage_damaged');
  const { kept } = await restore(home, file);
  expect(readFileSync(kept[0] as string).subarray(40, 4_096)).toEqual(Buffer.alloc(4_056, 0xaa));
  expect(existsSync(`${data}-wal`)).toBe(false);
  expect(await (await openHome(home)).engine.turns('notes')).toHaveLength(2);
});

test('the database that is replaced is found through links, and a link that leads to itself is replaced', async () => {
  const { folder, home, file } = await backedUp();
  const real = join(folder, 'deep', 'real.db');
  mkdirSync(join(folder, 'deep', 'home'), { recursive: true });
  renameSync(join(home, 'throughline.db'), real);
  rmSync(home, { recursive: true });
  symlinkSync(join('deep', 'home'), home);
  const link = join(home, 'throughline.db');
  symlinkSync(join('..', 'real.db'), link);
  for (const kept of [1, 0]) {
    const restored = await restore(home, file);
    expect({ to: restored.to, kept: restored.kept.length }).toEqual({ to: realpathSync(real), kept });
    expect([existsSync(join(folder, 'real.db')), lstatSync(link).isSymbolicLink()]).toEqual([false, true]);
    rmSync(real);
  }
  rmSync(link);
  symlinkSync('throughline.db', link);
  expect(await restore(home, file)).toMatchObject({ turns: 2, kept: [] });
});

test('a backup of an older version is upgraded when it is restored', async () => {
  const folder = temporaryFolder();
  const home = join(folder, 'home');
  const file = join(folder, 'older.db');
  writeOlder(file, 7);
  mkdirSync(home);
  writeFileSync(join(home, 'place'), `${placeIn(file)}\n`, { mode: 0o600 });
  await restore(home, file);
  expect(schemaOf(file)).toBe(7);
  expect(schemaOf(join(home, 'throughline.db'))).toBe(MIGRATIONS.length);
  const { reply } = await (await openHome(home))
    .conversation('notes')
    .ask('Which codewords have you seen?', { agent: 'ant' });
  expect(reply).toContain('osprey');
});

test('the commands print what they did, and errors about damage name "restore"', async () => {
  const cli = new CliHome();
  onTestFinished(() => cli.remove());
  await cli.ok('send', 'notes', 'The codeword is heron');
  expect(await cli.ok('backup', 'b.db')).toMatch(
    /^wrote .*b\.db: 1 conversation, 1 turn, \d+ events, until .* \(\d\.\d MB\)\n$/,
  );
  await cli.ok('send', 'notes', 'The codeword is osprey');
  const { code, stdout, stderr } = await cli.run('restore', 'b.db');
  expect({ code, stdout, stderr }).toEqual({
    code: 0,
    stdout: expect.stringMatching(/^restored .*throughline\.db: 1 conversation, 1 turn/),
    stderr: expect.stringContaining('kept what was there'),
  });
  expect((await cli.show('notes')).turns).toHaveLength(1);
  const data = join(cli.path, 'home', 'throughline.db');
  writeFileSync(data, readFileSync(data).fill(0xaa, 40));
  expect((await cli.run('list')).stderr).toContain('"throughline restore FILE"');
});

test('a server sends a backup only for its token, or for a key of its own owner with the scope admin', async () => {
  const cli = new CliHome();
  onTestFinished(() => cli.remove());
  await cli.ok('send', 'notes', 'The codeword is heron');
  const keyOf = async (...args: string[]) => (await cli.lines('keys', 'create', 'k', ...args))[0].key as string;
  const admin = await keyOf('--scopes', 'read,admin');
  const reader = await keyOf('--scopes', 'read');
  const stranger = await keyOf('--scopes', 'read,admin', '--as', 'ann');
  // So large that it does not fit into the buffers of the connection: the first backup is still being sent when the second is requested.
  const data = new DatabaseSync(join(cli.path, 'home', 'throughline.db'));
  data.exec('CREATE TABLE ballast AS SELECT zeroblob(32000000) AS bytes');
  data.close();
  const server = await serveProcess(cli);
  const get = (secret: string) => fetch(`${server.url}/backup`, { headers: { authorization: `Bearer ${secret}` } });
  for (const [secret, status] of [
    [reader, 403],
    [stranger, 403],
    ['wrong', 401],
  ] as const) {
    expect((await get(secret)).status).toBe(status);
  }
  const answer = await get(admin);
  expect([answer.status, (await get(server.token)).status]).toEqual([200, 429]);
  const bytes = Buffer.from(await answer.arrayBuffer());
  expect(answer.headers.get('content-length')).toBe(`${bytes.length}`);
  expect(bytes.toString('latin1', 0, 15)).toBe('SQLite format 3');
  await expect.poll(() => existsSync(join(cli.path, 'home', 'backup'))).toBe(false);

  const env = { THROUGHLINE_HOME: join(cli.path, 'elsewhere'), THROUGHLINE_TOKEN: admin };
  const args = ['backup', 'far.db', '--server', server.url, '--json'];
  const { code, stdout } = await cli.start(args, { env }).ended;
  expect({ code, made: JSON.parse(stdout) }).toMatchObject({
    code: 0,
    made: { conversations: 1, turns: 1, broken: [] },
  });
  expect(statSync(join(cli.path, 'far.db')).mode & 0o777).toBe(0o600);
  const refused = await cli.start([...args, '--force', '--sandboxes'], { env }).ended;
  expect({ code: refused.code, stderr: refused.stderr }).toEqual({
    code: 2,
    stderr: expect.stringContaining('A backup through a server cannot contain sandboxes.'),
  });
});

test('a caller that closes the connection after the last byte has received the whole backup', async () => {
  const cli = new CliHome();
  onTestFinished(() => cli.remove());
  const server = await serveProcess(cli, '--log-level', 'warn');
  const headers = { authorization: `Bearer ${server.token}` };
  const download = () =>
    new Promise((resolve, reject) => {
      const request = get(`${server.url}/backup`, { headers, agent: false }, (response) => {
        let left = Number(response.headers['content-length']);
        response.on('data', (bytes: Buffer) => {
          left -= bytes.length;
          if (left === 0) resolve(request.destroy());
        });
      });
      request.on('error', reject);
    });
  for (let round = 0; round < 8; round += 1) {
    await download();
    await expect.poll(() => existsSync(join(cli.path, 'home', 'backup'))).toBe(false);
  }
  expect(server.running.stderr).not.toContain('not sent completely');
});

test('a backup that does not arrive completely fails, and leaves no file', async () => {
  const { folder, file } = await backedUp();
  const bytes = readFileSync(file);
  const server = createServer((request, response) => {
    response.setHeader('throughline-interface', INTERFACE);
    if (request.url !== '/backup')
      return void response.end(JSON.stringify({ owner: 'local', by: 'token', scopes: [] }));
    response.writeHead(200, { 'content-length': bytes.length });
    response.write(bytes.subarray(0, 100_000), () => response.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const { port } = server.address() as { port: number };
  const engine = await connectTo({ server: `http://127.0.0.1:${port}`, token: 'x' });
  onTestFinished(() => engine.close());
  const request = { file: join(folder, 'half.db'), force: false, sandboxes: false };
  expect(await codeOf(receiveBackup(request, () => engine.caller.file('/backup')))).toBe('unreachable');
  expect(readdirSync(folder).toSorted()).toEqual(['backup.db', 'home']);
});

/** Runs a command and kills it when it creates an entry in the folder whose name matches. Repeats until the entry is left. */
async function runAndKill(cli: CliHome, folder: string, made: RegExp, ...args: string[]): Promise<void> {
  const isLeft = () => readdirSync(folder).some((name) => made.test(name));
  for (;;) {
    const running = cli.start(args);
    const watcher = watch(folder, (_, name) => {
      if (made.test(name ?? '')) running.kill('SIGKILL');
    });
    await running.ended;
    watcher.close();
    if (isLeft()) return; // otherwise the command ended before the kill
  }
}

test('a backup and a restore that are killed change nothing; doctor names what they left, and deletes it, as the next restore does', async () => {
  const cli = new CliHome();
  onTestFinished(() => cli.remove());
  const home = join(cli.path, 'home');
  for (const word of ['heron', 'osprey'])
    await cli.ok('send', 'notes', `The codeword is ${word} ${'x'.repeat(100_000)}`);
  await runAndKill(cli, cli.path, /partial$/, 'backup', 'b.db');
  expect(existsSync(join(cli.path, 'b.db'))).toBe(false);
  await cli.ok('backup', 'b.db');
  await cli.ok('send', 'notes', 'The codeword is amber');
  await runAndKill(cli, home, /^\.restore-/, 'restore', 'b.db');
  expect((await cli.show('notes')).turns).toHaveLength(3);
  const leftOver = () => readdirSync(home).filter((name) => name.startsWith('.restore-'));
  expect(leftOver()).toHaveLength(1);
  expect((await cli.run('doctor')).stdout).toMatch(/directory .*\.restore-.*killed/s);
  await cli.run('doctor', '--fix');
  expect(leftOver()).toEqual([]);
  // No restore runs beside a server, so doctor can tell that the directory is left over.
  await runAndKill(cli, home, /^\.restore-/, 'restore', 'b.db');
  const server = await serveProcess(cli);
  expect((await cli.run('doctor')).stdout).toMatch(/directory .*\.restore-.*killed/s);
  await cli.run('doctor', '--fix');
  expect(leftOver()).toEqual([]);
  server.running.kill('SIGTERM');
  await server.running.ended;
  await runAndKill(cli, home, /^\.restore-/, 'restore', 'b.db');
  expect((await cli.run('restore', 'b.db')).code).toBe(0);
  expect(leftOver()).toEqual([]);
  expect((await cli.show('notes')).turns).toHaveLength(2);
});

test('a backup that is received from another server never replaces the data of this data home', async () => {
  const { home } = await backedUp();
  const file = join(home, 'throughline.db');
  const before = readFileSync(file);
  const request = { home, file, force: true, sandboxes: false };
  expect(await codeOf(Promise.try(() => receiveBackup(request, async function* () {})))).toBe('conflict');
  expect(readFileSync(file)).toEqual(before);
});

test('sparse files take no space in a backup with sandboxes, are named with their sizes, and are sparse again after a restore', async () => {
  const { folder, home } = await backedUp();
  const work = join(home, 'sandboxes', readdirSync(join(home, 'sandboxes'))[0] as string, 'work');
  const [large, mixed] = [join(work, 'a\nlarge.img'), join(work, 'mixed.img')];
  // Large enough to be seen in the backup, and small enough that a failure does not fill the memory in which tests keep their files.
  truncateSync(createFile(large), 500e6);
  const [head, tail] = [Buffer.alloc(8_192, 'head'), Buffer.alloc(8_192, 'tail')];
  writeFileSync(mixed, head);
  truncateSync(mixed, 300e6);
  appendFileSync(mixed, tail);
  const notes: string[] = [];
  const file = join(folder, 'backup.tar');
  await backupHome({ home, file, force: false, sandboxes: true, onNote: (note) => notes.push(note) });
  expect(statSync(file).size).toBeLessThan(10_000_000);
  expect(notes).toEqual([
    expect.stringMatching(/^2 sparse files .* 800\.0 MB.*"[^"\n]*\/a\\nlarge\.img" \(500\.0 MB\)/),
  ]);
  await restore(home, file);
  expect(statSync(large)).toMatchObject({ size: 500e6, blocks: 0 });
  expect(statSync(mixed).size).toBe(300e6 + tail.length);
  expect(statSync(mixed).blocks * 512).toBeLessThan(1_000_000);
  const data = openSync(mixed, 'r');
  const bytes = Buffer.alloc(8_192);
  readSync(data, bytes, 0, bytes.length, 0);
  expect(bytes.equals(head)).toBe(true);
  readSync(data, bytes, 0, bytes.length, 300e6);
  expect(bytes.equals(tail)).toBe(true);
  closeSync(data);
});

test.for([
  [
    'the disk is too small for them',
    20_000_000,
    'GNU tar',
    /needs 2\d\.\d MB, and \d\.\d MB are free/,
    /Free some space/,
  ],
  [
    'tar writes sparse files out, and that is too much',
    0,
    'bsdtar',
    /needs 500\.0 GB/,
    /empty parts of sparse files: .*large\.img.*GNU tar/,
  ],
] as const)(
  'a backup with sandboxes is refused before anything is written when %s',
  async ([_, filled, kind, message, hint], context) => {
    const { folder, home } = await backedUp();
    const disk = smallDisk(context);
    const work = join(home, 'sandboxes', readdirSync(join(home, 'sandboxes'))[0] as string, 'work');
    truncateSync(createFile(join(work, 'large.img')), 500e9);
    writeFileSync(join(work, 'full'), Buffer.alloc(filled, 'x'));
    const programs = join(folder, 'programs');
    mkdirSync(programs);
    writeFileSync(join(programs, 'tar'), `#!/bin/sh\n[ "$1" = --version ] && echo '${kind} 1.0'`, { mode: 0o755 });
    vi.stubEnv('PATH', `${programs}:${process.env.PATH}`);
    onTestFinished(() => void vi.unstubAllEnvs());
    const made = backupHome({ home, file: join(disk, 'backup.tar'), force: false, sandboxes: true });
    await expect(made).rejects.toMatchObject({
      ...{ code: 'storage_full', message: expect.stringMatching(message), hint: expect.stringMatching(hint) },
    });
    expect(readdirSync(disk)).toEqual([]);
  },
);

function createFile(path: string): string {
  writeFileSync(path, '');
  return path;
}
