import { copyFileSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, onTestFinished, test } from 'vitest';
import { CLOCK, openAt, temporaryFolder } from '../../../../test/contracts/sqlite-folder.ts';
import { enqueue, newConversation, prompt } from '../../../../test/contracts/store/world.ts';
import type { Reason } from '../../../core/health.ts';
import { openSqliteStore } from '../store.ts';
import { isCutShort } from './cut-file.ts';

const PAGE = 4_096;

/** A data file and its log as a kill leaves them, and the same file after its checkpoint. */
async function killed(): Promise<{ file: string; whole: Buffer }> {
  const folder = temporaryFolder();
  const [used, file, checkpointed] = ['used.db', 'store.db', 'whole.db'].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ];
  const store = await openAt(used);
  const id = await newConversation(store);
  for (let i = 0; i < 20; i += 1) await enqueue(store, id, { prompt: prompt(`${i} `.repeat(3_000)) });
  for (const end of ['', '-wal']) for (const to of [file, checkpointed]) copyFileSync(`${used}${end}`, `${to}${end}`);
  await store.close();
  const db = new DatabaseSync(checkpointed);
  db.exec('PRAGMA wal_checkpoint(TRUNCATE)');
  db.close();
  return { file, whole: readFileSync(checkpointed) };
}

test('a data file whose checkpoint was interrupted at any page is complete with its log, and cut without it', async () => {
  const { file, whole } = await killed();
  const pages = whole.length / PAGE;
  expect(pages).toBeGreaterThan(50);
  expect(isCutShort(file)).toBe(false);
  const log = readFileSync(`${file}-wal`);
  for (let done = 1; done <= pages; done += 7) {
    writeFileSync(file, whole.subarray(0, done * PAGE));
    expect(isCutShort(file), `${done} of ${pages} pages`).toBe(false);
  }
  writeFileSync(`${file}-wal`, log.subarray(0, log.length / 2));
  writeFileSync(file, whole.subarray(0, 10 * PAGE));
  expect(isCutShort(file)).toBe(true);
  writeFileSync(`${file}-wal`, '');
  for (const [bytes, isCut] of [
    [whole.length - 1, true],
    [PAGE, true],
    [whole.length, false],
    [0, false],
  ] as const) {
    writeFileSync(file, whole.subarray(0, bytes));
    expect(isCutShort(file), `${bytes} bytes`).toBe(isCut);
  }
});

test('opening a cut data file fails at once', async () => {
  const { file, whole } = await killed();
  writeFileSync(file, whole);
  writeFileSync(`${file}-wal`, '');
  const first = await openAt(file);
  await newConversation(first); // its log has some pages
  for (const end of ['', '-wal']) copyFileSync(`${file}${end}`, `${file}.cut${end}`);
  await first.close();
  truncateSync(`${file}.cut`, statSync(`${file}.cut`).size - 10 * PAGE);
  const reasons: (Reason | null)[] = [];
  const health = { report: (_: string, reason: Reason | null) => void reasons.push(reason), reasons: () => [] };
  const store = await openSqliteStore({ file: `${file}.cut`, clock: CLOCK, boot: 'boot-1', health });
  onTestFinished(() => store.close());
  expect(reasons).toMatchObject([{ code: 'storage_damaged', unready: false }]);
});
