import { copyFileSync, existsSync, mkdirSync, renameSync, rmSync, statSync, symlinkSync, truncateSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { CLOCK, openAt, temporaryFolder } from '../../../../test/contracts/sqlite-folder.ts';
import { ANN, codeOf, enqueue, newConversation, prompt } from '../../../../test/contracts/store/world.ts';
import type { Reason } from '../../../core/health.ts';
import { openDatabase } from '../file/open.ts';
import { openSqliteStore, storeOn } from '../store.ts';

/** An open store in a folder of its own, with one conversation. */
async function used() {
  const file = join(temporaryFolder(), 'home', 'store.db');
  const store = await openAt(file);
  const id = await newConversation(store);
  return { file, store, id };
}

/** The error of a write. */
async function refusal(write: Promise<unknown>): Promise<{ code: string; message: string; hint: string }> {
  return (await write.then(
    () => ({ code: 'none' }),
    (error) => error,
  )) as never;
}

test.each([
  ['deleted', (file: string) => rmSync(file)],
  ['moved with its directory', (file: string) => renameSync(dirname(file), `${dirname(file)}-moved`)],
])('no write is acknowledged when the data file was %s; it can still be read', async (_what, take) => {
  const { file, store, id } = await used();
  take(file);
  for (let i = 0; i < 3; i += 1) {
    const { code, message } = await refusal(enqueue(store, id));
    expect(code).toBe('storage_gone');
    expect(message).toContain(file);
  }
  expect(existsSync(file)).toBe(false);
  expect((await store.findConversation(ANN, id))?.id).toBe(id);
  expect(await store.turns(ANN, id, { after: 0, limit: 9 })).toEqual([]);
});

test.each([
  ['data file', ''],
  ['log', '-wal'],
])('no write is acknowledged after the %s was truncated', async (_what, ending) => {
  const { file, store, id } = await used();
  await enqueue(store, id);
  const path = `${file}${ending}`;
  truncateSync(path, statSync(path).size / 2);
  const { code, message, hint } = await refusal(enqueue(store, id));
  expect({ code, message, hint }).toEqual({
    code: 'storage_gone',
    message: expect.stringContaining(`${path} was cut`),
    hint: expect.stringContaining('restore'),
  });
  expect(await codeOf(store.check())).toBe('storage_gone');
});

test('a read of a truncated part reports the truncation, and not damage', async () => {
  const { file, store, id } = await used();
  for (let i = 0; i < 20; i += 1) await enqueue(store, id, { prompt: prompt(`${i} `.repeat(3_000)) });
  await store.close();
  const again = await openAt(file);
  truncateSync(file, statSync(file).size / 2);
  expect(await codeOf(again.turns(ANN, id, { after: 0, limit: 99 }))).toBe('storage_gone');
});

test('a missing data file is also detected by a process that can only read it', async () => {
  const { file, store } = await used();
  await store.close();
  const db = await openDatabase({ file, boot: 'boot-1', clock: CLOCK, busyMs: 1000 });
  db.refuseWrites();
  const { store: reader } = storeOn(db, { file, clock: CLOCK, busyMs: 1000, boot: 'boot-1' });
  onTestFinished(() => reader.close());
  await reader.check();
  renameSync(file, `${file}.kept`);
  expect(await codeOf(reader.check())).toBe('storage_gone');
  renameSync(`${file}.kept`, file);
  await reader.check();
});

test('work continues when the same file is back; for another file a restart is required', async () => {
  const { file, store, id } = await used();
  renameSync(file, `${file}.kept`);
  expect(await codeOf(enqueue(store, id))).toBe('storage_gone');
  copyFileSync(`${file}.kept`, file);
  const { code, message, hint } = await refusal(enqueue(store, id));
  expect({ code, message, hint }).toMatchObject({
    code: 'storage_gone',
    message: expect.stringContaining('Another file'),
    hint: expect.stringContaining('Restart'),
  });
  renameSync(`${file}.kept`, file);
  expect((await enqueue(store, id)).n).toBe(1);
});

test('reading or opening while the data file is missing creates no new file and does not change its log', async () => {
  const { file, store, id } = await used();
  const log = statSync(`${file}-wal`);
  renameSync(file, `${file}.kept`);
  expect(await store.search(ANN, 'osprey', 9)).toEqual([]);
  expect(await refusal(openAt(file))).toMatchObject({
    code: 'storage_gone',
    message: expect.stringContaining('is missing, but its log'),
  });
  expect(existsSync(file)).toBe(false);
  expect(statSync(`${file}-wal`)).toMatchObject({ ino: log.ino, size: log.size });
  renameSync(`${file}.kept`, file);
  expect((await enqueue(store, id)).n).toBe(1);
});

test('a deleted log is detected as well, and closing normally saves its content', async () => {
  const { file, store, id } = await used();
  rmSync(`${file}-wal`);
  const { code, hint } = await refusal(enqueue(store, id));
  expect(code).toBe('storage_gone');
  expect(hint).toContain('Stop normally');
  await store.close();
  expect((await (await openAt(file)).findConversation(ANN, id))?.id).toBe(id);
});

test('a file that disappears during a commit is detected before the commit is acknowledged', async () => {
  const file = join(temporaryFolder(), 'store.db');
  const db = await openDatabase({ file, boot: 'boot-1', clock: CLOCK, busyMs: 1000 });
  const { store, queue } = storeOn(db, { file, clock: CLOCK, busyMs: 1000, boot: 'boot-1' });
  onTestFinished(() => store.close());
  const write = queue.write((tx) => {
    rmSync(file);
    tx.db.run("INSERT INTO facts VALUES ('', 'a', 'b')");
  });
  expect(await codeOf(write)).toBe('storage_gone');
});

test('a file that is reached through a link is watched where it is', async () => {
  const folder = temporaryFolder();
  mkdirSync(join(folder, 'real'));
  await (await openAt(join(folder, 'real', 'store.db'))).close();
  symlinkSync(join(folder, 'real', 'store.db'), join(folder, 'link.db'));
  const store = await openAt(join(folder, 'link.db'));
  const id = await newConversation(store);
  expect((await enqueue(store, id)).n).toBe(1);
  rmSync(join(folder, 'real', 'store.db-wal'));
  expect(await codeOf(enqueue(store, id))).toBe('storage_gone');
});

test('a missing file is reported to the health, also without writes, and its return as well', async () => {
  const file = join(temporaryFolder(), 'store.db');
  let reason: Reason | null = null;
  const health = {
    report: (_part: string, now: Reason | null) => {
      reason = now;
    },
    reasons: () => [],
  };
  const store = await openSqliteStore({ file, clock: CLOCK, boot: 'boot-1', health });
  onTestFinished(() => store.close());
  const id = await newConversation(store);
  renameSync(file, `${file}.kept`);
  await vi.waitFor(() => expect(reason).toMatchObject({ code: 'storage_gone', unready: true }), 120_000);
  renameSync(`${file}.kept`, file);
  await enqueue(store, id);
  expect(reason).toBeNull();
});
