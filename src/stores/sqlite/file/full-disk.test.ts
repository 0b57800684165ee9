import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, type TestContext, test } from 'vitest';
import { openAt, temporaryFolder } from '../../../../test/contracts/sqlite-folder.ts';
import { ANN, allEvents, codeOf, enqueue, newConversation, prompt } from '../../../../test/contracts/store/world.ts';

test('on a full disk no acknowledged write is lost, reading works, and writing works again when there is space', async (context) => {
  const disk = smallDisk(context);
  const store = await openAt(join(disk, 'store.db'));
  const id = await newConversation(store);
  const filler = join(disk, 'filler');
  writeFileSync(filler, Buffer.alloc(statfsSync(disk).bavail * statfsSync(disk).bsize));
  const accepted: string[] = [];
  let code: string | null = null;
  for (let i = 0; i < 2000 && code === null; i += 1) {
    code = await codeOf(
      enqueue(store, id, { prompt: prompt(`${i} `.repeat(800)) }).then((turn) => accepted.push(turn.id)),
    );
  }
  expect(code).toBe('storage_full');
  expect(await codeOf(enqueue(store, id))).toBe('storage_full');
  expect((await store.turns(ANN, id, { after: 0, limit: 9999 })).map((turn) => turn.id)).toEqual(accepted);

  rmSync(filler);
  expect((await enqueue(store, id)).n).toBe(accepted.length + 1);
  const events = await allEvents(store, id);
  expect(events.map(({ seq }) => seq)).toEqual(events.map((_, index) => index + 1));
  expect((await store.verify(ANN, id)).broken).toBeNull();
});

test('a store opened on a full disk can be read, including its log, and written when there is space', async (context) => {
  const disk = smallDisk(context);
  const file = join(disk, 'store.db');
  const store = await openAt(file);
  const id = await newConversation(store);
  await enqueue(store, id);
  // As a kill leaves it: the log is not merged into the file, and its index is gone.
  const [main, log] = ['', '-wal'].map((end) => readFileSync(`${file}${end}`));
  await store.close();
  writeFileSync(file, main as Buffer);
  writeFileSync(`${file}-wal`, log as Buffer);
  const filler = join(disk, 'filler');
  writeFileSync(filler, Buffer.alloc(statfsSync(disk).bavail * statfsSync(disk).bsize));

  const again = await openAt(file);
  expect(await again.turns(ANN, id, { after: 0, limit: 9 })).toHaveLength(1);
  expect(await Promise.all([codeOf(enqueue(again, id)), codeOf(enqueue(again, id))])).toEqual(
    Array(2).fill('storage_full'),
  );
  expect(await again.turns(ANN, id, { after: 0, limit: 9 })).toHaveLength(1);
  rmSync(filler);
  const [turns, added] = await Promise.all([again.turns(ANN, id, { after: 0, limit: 9 }), enqueue(again, id)]);
  expect(added.n).toBe(2);
  expect([1, 2]).toContain(turns.length); // read before it, or after it
  const other = await openAt(file); // it no longer blocks other processes
  expect(await other.turns(ANN, id, { after: 0, limit: 9 })).toHaveLength(2);
  expect((await other.verify(ANN, id)).broken).toBeNull();
});

test('a disk that is full from the start is reported, and the store opens when there is space', async (context) => {
  const disk = smallDisk(context);
  const filler = join(disk, 'filler');
  writeFileSync(filler, Buffer.alloc(statfsSync(disk).bavail * statfsSync(disk).bsize));
  expect(await codeOf(openAt(join(disk, 'new', 'store.db')))).toBe('storage_full');
  rmSync(filler);
  expect(await codeOf(openAt(join(disk, 'new', 'store.db')).then((store) => newConversation(store)))).toBeNull();
});

/** A file system of its own of 4 MB, where that is allowed. */
function smallDisk(context: TestContext): string {
  const disk = join(temporaryFolder(), 'disk');
  mkdirSync(disk);
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=4m', 'tmpfs', disk], { stdio: 'pipe' });
  } catch {
    return context.skip('a small file system cannot be mounted here: that needs root on Linux');
  }
  onTestFinished(() => {
    execFileSync('umount', ['-l', disk]);
  });
  return disk;
}
