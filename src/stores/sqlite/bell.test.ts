import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { Child, openAt, temporaryFolder } from '../../../test/contracts/sqlite-folder.ts';
import { enqueue, newConversation } from '../../../test/contracts/store/world.ts';

test('another process hears the bell within milliseconds', async () => {
  const file = join(temporaryFolder(), 'store.db');
  const ears = new Child(file, 'listen', 'ears');
  await ears.line(0);
  const hand = new Child(file, 'ring', 'conversation');
  await hand.line(0);
  const delays: number[] = [];
  for (let i = 1; i <= 30; i += 1) {
    await sleep(12);
    const heard = ears.lines.length;
    hand.tell();
    const { at: rung } = (await hand.line(i)) as { at: number };
    const { moved, at } = (await ears.line(heard)) as { moved: string[]; at: number };
    expect(moved).toEqual(['conversation']);
    delays.push(at - rung);
  }
  await Promise.all([ears.finish(), hand.finish()]);
  const median = delays.toSorted((a, b) => a - b)[15] as number;
  // Seen: 0.3 ms; the slow look alone would be 250.
  expect(median).toBeLessThan(150);
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
    for (let waited = 0; calls < round && waited < 3000; waited += 10) await sleep(10);
    expect(calls).toBeGreaterThanOrEqual(round);
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
