import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, onTestFinished, test } from 'vitest';
import { schemaOf, writeOlder } from '../../../../test/contracts/older-database.ts';
import { Child, CLOCK, openAt, temporaryFolder } from '../../../../test/contracts/sqlite-folder.ts';
import { ANN, codeOf, newConversation } from '../../../../test/contracts/store/world.ts';
import type { Reason } from '../../../core/health.ts';
import { MIGRATIONS } from '../migrations/list.ts';
import { openSqliteStore } from '../store.ts';

const CURRENT = MIGRATIONS.length;

function older(schema = 9): string {
  const file = join(temporaryFolder(), 'store.db');
  writeOlder(file, schema);
  return file;
}

async function lookAt(file: string) {
  const notes: string[] = [];
  const looks = (note: string) => void notes.push(note);
  const store = await openSqliteStore({ file, clock: CLOCK, boot: 'boot-1', looks });
  onTestFinished(() => store.close());
  return { store, notes };
}

test('an older database is upgraded, and a copy of it is kept beside it', async () => {
  const file = older();
  const store = await openAt(file);
  expect(await store.listConversations('local', { limit: 9 })).not.toEqual([]);
  expect(schemaOf(file)).toBe(CURRENT);
  const copy = `${file}.schema-9`;
  expect(schemaOf(copy)).toBe(9);
  expect(statSync(copy).mode & 0o777).toBe(0o600);
  const kept = new DatabaseSync(copy, { readOnly: true });
  expect(kept.prepare('PRAGMA integrity_check').get()).toEqual({ integrity_check: 'ok' });
  expect(kept.prepare('SELECT count(*) AS n FROM turns').get()).toEqual({ n: 13 });
  kept.close();
});

test('no copy of a new database is made, and an existing copy is kept', async () => {
  const folder = temporaryFolder();
  await (await openAt(join(folder, 'new.db'))).close();
  expect(readdirSync(folder).filter((name) => name.includes('schema'))).toEqual([]);
  const file = older();
  await (await openAt(file)).close();
  writeOlder(file, 9);
  await (await openAt(file)).close();
  expect(readdirSync(join(file, '..')).filter((name) => name.includes('schema'))).toEqual([
    'store.db.schema-9',
    'store.db.schema-9.2',
  ]);
});

test('an older database is not upgraded while another process has it open', async () => {
  const file = older();
  const child = new Child(file, 'hold', 'old');
  expect(await child.line(0)).toBe('open');
  const refused = await openAt(file).catch((error) => error);
  expect(refused).toMatchObject({ code: 'storage_busy', message: expect.stringContaining('another process') });
  expect(refused.hint).toContain('Stop that process');
  expect(schemaOf(file)).toBe(9);
  expect(readdirSync(join(file, '..')).filter((name) => name.includes('schema'))).toEqual([]);
  child.tell(); // it can still write
  expect(await child.line(1)).toBe('wrote');
  await child.finish();
  await (await openAt(file)).close();
  expect(schemaOf(file)).toBe(CURRENT);
});

test('several processes that open an older database at once all succeed', async () => {
  const file = older();
  const names = ['a', 'b', 'c', 'd'];
  await Promise.all(names.map((name) => new Child(file, 'open', name).done()));
  const store = await openAt(file);
  expect((await store.listConversations(ANN, { limit: 9 })).map(({ id }) => id)).toEqual(expect.arrayContaining(names));
});

test('reading an older database without an upgrade changes nothing, also while another process uses it', async () => {
  const file = older();
  const before = readFileSync(file);
  const child = new Child(file, 'hold', 'old');
  await child.line(0);
  const { store, notes } = await lookAt(file);
  const conversations = await store.listConversations('local', { limit: 9 });
  expect(conversations.map(({ key }) => key)).toContain('notes');
  expect(notes).toEqual([expect.stringContaining('schema 9 of')]);
  expect(await codeOf(newConversation(store))).toBe('storage_readonly');
  await store.close();
  await child.finish();
  expect(schemaOf(file)).toBe(9);
  expect(readFileSync(file).equals(before)).toBe(true);
  expect(readdirSync(join(file, '..')).filter((name) => name.includes('schema'))).toEqual([]);
});

test('a current database that is opened for reading can be written as well', async () => {
  const file = join(temporaryFolder(), 'store.db');
  await (await openAt(file)).close();
  const { store, notes } = await lookAt(file);
  expect(notes).toEqual([]);
  expect(await codeOf(newConversation(store))).toBeNull();
});

test('a process stops reading and writing when a newer version has upgraded its database', async () => {
  const file = join(temporaryFolder(), 'store.db');
  const reasons: (Reason | null)[] = [];
  const health = { report: (_: string, reason: Reason | null) => void reasons.push(reason), reasons: () => [] };
  const store = await openSqliteStore({ file, clock: CLOCK, boot: 'boot-1', health });
  onTestFinished(() => store.close());
  const id = await newConversation(store);
  const newer = new DatabaseSync(file);
  newer.exec(`PRAGMA user_version = ${CURRENT + 1}`);
  expect(await codeOf(newConversation(store))).toBe('storage_newer');
  await expect.poll(() => codeOf(store.findConversation(ANN, id))).toBe('storage_newer');
  expect(reasons.find((reason) => reason !== null)).toMatchObject({ code: 'storage_newer', unready: true });
  expect(newer.prepare('SELECT count(*) AS n FROM conversations').get()).toEqual({ n: 1 });
  newer.close();
});

test('opening a database twice in one process does not hide it from others', async () => {
  const file = join(temporaryFolder(), 'store.db');
  await openAt(file);
  await openAt(file);
  const other = new Child(file, 'alone', 'other');
  expect(await other.line(0)).toBe('in use');
  await other.finish();
});
