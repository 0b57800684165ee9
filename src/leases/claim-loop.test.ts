import { expect, test } from 'vitest';
import { ClaimLoop } from './claim-loop.ts';

test('every wake is followed by a new pass, at any moment of the pass before', async () => {
  for (let moment = 0; moment < 12; moment += 1) {
    let begun = 0;
    const loop = new ClaimLoop(async () => {
      begun += 1;
      await null;
    });
    loop.wake();
    for (let i = 0; i < moment; i += 1) await null;
    const before = begun;
    loop.wake();
    for (let i = 0; i < 20; i += 1) await null;
    expect(begun, `woken after ${moment} ticks`).toBeGreaterThan(before);
  }
});

test('passes run one after the other; all wakes during a pass share the next one', async () => {
  const open: PromiseWithResolvers<void>[] = [];
  const loop = new ClaimLoop(() => {
    const pass = Promise.withResolvers<void>();
    open.push(pass);
    return pass.promise;
  });
  loop.wake();
  await null;
  for (let i = 0; i < 3; i += 1) loop.wake();
  await null;
  expect(open).toHaveLength(1);
  open[0]?.resolve();
  await new Promise(setImmediate);
  expect(open).toHaveLength(2);
  open[1]?.resolve();
  await new Promise(setImmediate);
  expect(open).toHaveLength(2);
});

test('a pass that wakes the loop itself is followed by another one, which does not overlap with it', async () => {
  const did: string[] = [];
  const loop: ClaimLoop = new ClaimLoop(async () => {
    did.push('begins');
    if (did.length === 1) loop.wake();
    await null;
    did.push('ends');
  });
  loop.wake();
  await new Promise(setImmediate);
  expect(did).toEqual(['begins', 'ends', 'begins', 'ends']);
});

test('closing waits for the running pass and starts no other', async () => {
  let passes = 0;
  const { promise, resolve } = Promise.withResolvers<void>();
  const work = new ClaimLoop(() => {
    passes += 1;
    return promise;
  });
  work.wake();
  await null;
  work.wake();
  const closed = work.close();
  resolve();
  await closed;
  work.wake();
  await new Promise(setImmediate);
  expect(passes).toBe(1);
});
