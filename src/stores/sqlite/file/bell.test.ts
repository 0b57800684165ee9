import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { until } from '../../../../test/contracts/agent-sandbox.ts';
import { Child, openAt, temporaryFolder } from '../../../../test/contracts/sqlite-folder.ts';
import { enqueue, newConversation } from '../../../../test/contracts/store/world.ts';

test('another process hears the bell, every time', async () => {
  const file = join(temporaryFolder(), 'store.db');
  const ears = new Child(file, 'listen', 'ears');
  await ears.line(0);
  const hand = new Child(file, 'ring', 'conversation');
  await hand.line(0);
  for (let i = 1; i <= 30; i += 1) {
    hand.tell();
    await hand.line(i);
    // Nothing else would say so: without the bell this is waited for in vain.
    expect(await ears.line(i)).toEqual({ moved: ['conversation'] });
  }
  await Promise.all([ears.finish(), hand.finish()]);
});

test('a bell that was deleted rings again', async () => {
  const file = join(temporaryFolder(), 'store.db');
  const [store, other] = [await openAt(file), await openAt(file)];
  const id = await newConversation(store);
  let calls = 0;
  const stop = other.listen(() => {
    calls += 1;
  });
  for (let round = 1; round <= 2; round += 1) {
    rmSync(`${file}.bell`);
    await enqueue(store, id);
    await until('it rings', () => calls >= round);
    calls = round;
  }
  stop();
});

test('where the bell cannot be watched at all, the slow look finds what is new', async () => {
  const file = join(temporaryFolder(), 'store.db');
  const [store, other] = [await openAt(file), await openAt(file)];
  const id = await newConversation(store);
  const heard = new Promise<readonly string[] | null>((resolve) => other.listen(resolve));
  // A folder in its place cannot be replaced by a file; touching it is not seen by who watched the file.
  rmSync(`${file}.bell`);
  mkdirSync(`${file}.bell`);
  await enqueue(store, id);
  expect(await heard).toEqual([id]);
});
