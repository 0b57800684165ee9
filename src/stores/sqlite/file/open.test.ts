import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, onTestFinished, type TestContext, test, vi } from 'vitest';
import { Child, CLOCK, openAt, temporaryFolder } from '../../../../test/contracts/sqlite-folder.ts';
import { ANN, codeOf, newConversation } from '../../../../test/contracts/store/world.ts';
import { CURRENT_SCHEMA } from '../migrations/current.ts';
import { Database } from './database.ts';
import { openDatabase } from './open.ts';
import { CURRENT, schemaVersion } from './upgrade.ts';

test('a missing directory and file are created with access for this user only', async () => {
  const file = join(temporaryFolder(), 'deep', 'er', 'store.db');
  const store = await openAt(file);
  await newConversation(store);
  expect(statSync(join(file, '..')).mode & 0o777).toBe(0o700);
  for (const name of readdirSync(join(file, '..'))) expect(statSync(join(file, '..', name)).mode & 0o077).toBe(0);
  expect(statSync(file).mode & 0o777).toBe(0o600);
});

test('the database uses a write-ahead log, full sync and foreign keys', async () => {
  const file = join(temporaryFolder(), 'store.db');
  const db = await openDatabase({ file, boot: 'boot-1', clock: CLOCK, busyMs: 10_000 });
  onTestFinished(() => db.close());
  expect(db.one('PRAGMA journal_mode')).toEqual({ journal_mode: 'wal' });
  expect(db.one('PRAGMA synchronous')).toEqual({ synchronous: 2 });
  expect(db.one('PRAGMA foreign_keys')).toEqual({ foreign_keys: 1 });
});

test.each([
  ['text', 'This is no database, and somebody wants to keep it.\n'.repeat(100)],
  ['a few bytes', 'SQLite for'],
  ['almost a database', `SQLite format 2\0${'x'.repeat(5000)}`],
])('a file that is not a database (%s) is refused and stays as it is', async (_what, content) => {
  const folder = temporaryFolder();
  const file = join(folder, 'notes.txt');
  writeFileSync(file, content);
  expect(await codeOf(openAt(file))).toBe('storage_damaged');
  expect(readFileSync(file, 'utf8')).toBe(content);
  expect(readdirSync(folder)).toEqual(['notes.txt']);
});

test('opening a new file waits for a lock of another process at every step', async () => {
  const steps = { one: Database.prototype.one, script: Database.prototype.script };
  onTestFinished(() => void Object.assign(Database.prototype, steps));
  for (let [busyAt, count] = [1, 1]; count >= busyAt; busyAt += 1) {
    const file = join(temporaryFolder(), 'store.db');
    count = 0;
    const step = <Args extends unknown[], T>(run: (this: Database, ...args: Args) => T) =>
      function (this: Database, ...args: Args): T {
        const hasLock = args[0] === 'ROLLBACK' || args[0] === CURRENT_SCHEMA;
        if (!hasLock) count += 1;
        if (hasLock || count !== busyAt) return run.apply(this, args);
        throw Object.assign(new Error('database is locked'), { code: 'ERR_SQLITE_ERROR', errcode: 5 });
      };
    Object.assign(Database.prototype, { one: step(steps.one), script: step(steps.script) });
    const db = await openDatabase({ file, boot: 'boot-1', clock: CLOCK, busyMs: 10_000 });
    Object.assign(Database.prototype, steps);
    expect(schemaVersion(db), `the lock was met at step ${busyAt}`).toBe(CURRENT);
    db.close();
  }
});

test('if the file is replaced while it is being opened, the new file is used', async () => {
  const file = join(temporaryFolder(), 'store.db');
  await (await openAt(file)).close();
  const restored = await openAt(`${file}.new`);
  const id = await newConversation(restored);
  await restored.close();
  const restoring = new Database(file);
  restoring.reconnect({ alone: true });
  restoring.script('PRAGMA journal_mode = DELETE; BEGIN EXCLUSIVE');
  const opening = openAt(file);
  renameSync(`${file}.new`, file);
  restoring.close();
  expect((await (await opening).findConversation(ANN, id))?.id).toBe(id);
});

test('a damaged database is refused', async () => {
  const file = join(temporaryFolder(), 'store.db');
  await (await openAt(file)).close();
  const bytes = readFileSync(file);
  writeFileSync(file, bytes.fill(0xaa, 40));
  expect(await codeOf(openAt(file))).toBe('storage_damaged');
});

test('the database of another program is refused and stays as it is', async () => {
  const file = join(temporaryFolder(), 'other.db');
  const db = new DatabaseSync(file);
  db.exec('CREATE TABLE bookmarks (url TEXT)');
  db.close();
  const before = readFileSync(file);
  expect(await codeOf(openAt(file))).toBe('storage_damaged');
  expect(readFileSync(file).equals(before)).toBe(true);
});

test('a newer schema is refused and stays as it is', async () => {
  const file = join(temporaryFolder(), 'store.db');
  await (await openAt(file)).close();
  const db = new DatabaseSync(file);
  db.exec('PRAGMA user_version = 999');
  db.close();
  const before = readFileSync(file);
  expect(await codeOf(openAt(file))).toBe('storage_newer');
  expect(readFileSync(file).equals(before)).toBe(true);
});

test('an empty file is a new database', async () => {
  const file = join(temporaryFolder(), 'store.db');
  writeFileSync(file, '');
  expect(await codeOf(openAt(file).then((store) => newConversation(store)))).toBeNull();
});

test('a read-only file can be read, and written once that is allowed', async (context) => {
  const file = join(temporaryFolder(), 'store.db');
  const store = await openAt(file);
  const id = await newConversation(store);
  await store.close();
  chmodSync(join(file, '..'), 0o777);
  chmodSync(file, 0o444);
  await asOrdinaryUser(context, async () => {
    const reader = await openAt(file);
    expect((await reader.findConversation(ANN, id))?.id).toBe(id);
    expect(await codeOf(newConversation(reader))).toBe('storage_readonly');
    await reader.close();
  });
  chmodSync(file, 0o600);
  expect(await codeOf(newConversation(await openAt(file)))).toBeNull();
});

test('a read-only directory is refused, also for a new file, and nothing is made', async (context) => {
  const folder = join(temporaryFolder(), 'locked');
  mkdirSync(folder);
  chmodSync(join(folder, '..'), 0o755);
  const file = join(folder, 'store.db');
  await (await openAt(file)).close();
  chmodSync(file, 0o666);
  chmodSync(folder, 0o555);
  expect(await asOrdinaryUser(context, () => codeOf(openAt(file)))).toBe('storage_readonly');
  expect(await asOrdinaryUser(context, () => codeOf(openAt(join(folder, 'new.db'))))).toBe('storage_readonly');
  expect(await asOrdinaryUser(context, () => codeOf(openAt(join(folder, 'sub', 'new.db'))))).toBe('storage_readonly');
  expect(existsSync(join(folder, 'sub'))).toBe(false);
  chmodSync(folder, 0o755);
  expect(await codeOf(openAt(file))).toBeNull();
});

test('several processes that open a new file at once all succeed', async () => {
  const file = join(temporaryFolder(), 'new', 'store.db');
  const names = ['a', 'b', 'c', 'd', 'e'];
  await Promise.all(names.map((name) => new Child(file, 'open', name).done()));
  const store = await openAt(file);
  expect((await store.listConversations(ANN, { limit: 9 })).map(({ id }) => id).toSorted()).toEqual(names);
});

test('many handles of one process that open a new file at once all succeed', async () => {
  const file = join(temporaryFolder(), 'store.db');
  const stores = await Promise.all(Array.from({ length: 8 }, () => openAt(file)));
  await Promise.all(stores.map((store) => newConversation(store)));
  expect(await (await openAt(file)).listConversations(ANN, { limit: 99 })).toHaveLength(8);
});

const NOBODY = 65_534;

/** Root may write everything, so the test runs as another user. */
async function asOrdinaryUser<T>(context: TestContext, act: () => Promise<T>): Promise<T> {
  if (process.geteuid === undefined) return context.skip('this system has no file permissions of this kind');
  if (process.geteuid() !== 0) return act();
  process.seteuid?.(NOBODY);
  try {
    return await act();
  } finally {
    process.seteuid?.(0);
  }
}

test('a database that another process creates between two checks is not mistaken for that of another program', async () => {
  const file = join(temporaryFolder(), 'store.db');
  const look = Database.prototype.one;
  let refused: unknown = null;
  const spy = vi.spyOn(Database.prototype, 'one').mockImplementation(function (this: Database, sql, ...rest) {
    if (sql === 'PRAGMA application_id' && refused === null) {
      const other = new DatabaseSync(file);
      try {
        other.exec('BEGIN IMMEDIATE; CREATE TABLE theirs(a); COMMIT');
        refused = 'nothing';
      } catch (error) {
        refused = error;
      } finally {
        other.close();
      }
    }
    return look.call(this, sql, ...rest) as never;
  });
  try {
    await openAt(file);
    expect(refused).toMatchObject({ message: expect.stringContaining('locked') });
  } finally {
    spy.mockRestore();
  }
});
