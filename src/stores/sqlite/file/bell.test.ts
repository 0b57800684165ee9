import { existsSync, mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate as nextRound } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { until } from '../../../../test/contracts/agent-sandbox.ts';
import { Child, openAt, temporaryFolder } from '../../../../test/contracts/sqlite-folder.ts';
import { enqueue, newConversation } from '../../../../test/contracts/store/world.ts';
import { Bell } from './bell.ts';
import type { Database } from './database.ts';
import { BatchNews } from './write-queue.ts';

test('another process is notified of every commit', async () => {
  const file = join(temporaryFolder(), 'store.db');
  const listener = new Child(file, 'listen', 'listener');
  await listener.line(0);
  const writer = new Child(file, 'enqueue', 'conversation');
  await writer.line(0);
  let lines = 0;
  for (let i = 1; i <= 30; i += 1) {
    writer.tell();
    await writer.line(i);
    // Without the bell, this line would not be printed.
    let heard: unknown;
    do {
      lines += 1;
      heard = await listener.line(lines);
      // A commit while the listener looks causes one more notification, without names: anything may have moved.
    } while ((heard as { moved: unknown }).moved === null);
    expect(heard).toEqual({ moved: ['conversation'] });
  }
  await Promise.all([listener.finish(), writer.finish()]);
});

test('a bell whose file was deleted notifies again', async () => {
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
    await until('it is notified', () => calls >= round);
    calls = round;
  }
  stop();
});

test('a listener creates a deleted file again, also without a commit', async () => {
  const file = join(temporaryFolder(), 'store.db');
  const store = await openAt(file);
  const stop = store.listen(() => {});
  for (let round = 1; round <= 2; round += 1) {
    rmSync(`${file}.bell`);
    await until('the file is there again', () => existsSync(`${file}.bell`));
  }
  stop();
});

test('a listener of the process that commits is notified before the commit is answered', async () => {
  const store = await openAt(join(temporaryFolder(), 'store.db'));
  const id = await newConversation(store);
  const heard: unknown[] = [];
  const stop = store.listen((moved) => heard.push(moved));
  await enqueue(store, id);
  expect(heard).toEqual([[id]]);
  stop();
  await enqueue(store, id);
  expect(heard).toEqual([[id]]);
});

test('a bell that is closed right after a commit notifies first, and never again', async () => {
  const file = join(temporaryFolder(), 'bell');
  const bell = new Bell(file, null as unknown as Database, () => 0);
  const news = new BatchNews();
  news.moved('conversation', null);
  bell.notify(news);
  bell.close();
  expect(existsSync(file)).toBe(true);
  rmSync(file);
  await nextRound();
  expect(existsSync(file)).toBe(false);
});

test('if the file cannot be watched, polling finds new commits', async () => {
  const file = join(temporaryFolder(), 'store.db');
  const [store, other] = [await openAt(file), await openAt(file)];
  const id = await newConversation(store);
  const heard = new Promise<readonly string[] | null>((resolve) => other.listen(resolve));
  // A folder in its place cannot be replaced by a file; whoever watched the file does not see that it is touched.
  rmSync(`${file}.bell`);
  mkdirSync(`${file}.bell`);
  await enqueue(store, id);
  expect(await heard).toEqual([id]);
});

test('a listener may stop during its call and another one start: the new one misses no later commit', async () => {
  const file = join(temporaryFolder(), 'store.db');
  const [store, other] = [await openAt(file), await openAt(file)];
  const id = await newConversation(store);
  let listeners = 0;
  const listenOnce = () => {
    const stop = other.listen(() => {
      stop();
      listeners += 1;
      listenOnce();
    });
  };
  listenOnce();
  for (let i = 1; i <= 20; i += 1) {
    await enqueue(store, id);
    await until(`it is notified for the ${i}. time`, () => listeners >= i);
  }
});
