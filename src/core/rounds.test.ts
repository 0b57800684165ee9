import { expect, test } from 'vitest';
import { Rounds } from './rounds.ts';

test('whoever wakes it gets a round that begins after that, at whatever moment of the one before', async () => {
  for (let moment = 0; moment < 12; moment += 1) {
    let begun = 0;
    const rounds = new Rounds(async () => {
      begun += 1;
      await null;
    });
    rounds.wake();
    for (let i = 0; i < moment; i += 1) await null;
    const before = begun;
    rounds.wake();
    for (let i = 0; i < 20; i += 1) await null;
    expect(begun, `woken after ${moment} ticks`).toBeGreaterThan(before);
  }
});

test('rounds come one after the other; those who wake it during one share the next', async () => {
  const open: PromiseWithResolvers<void>[] = [];
  const rounds = new Rounds(() => {
    const round = Promise.withResolvers<void>();
    open.push(round);
    return round.promise;
  });
  rounds.wake();
  await null;
  for (let i = 0; i < 3; i += 1) rounds.wake();
  await null;
  expect(open).toHaveLength(1);
  open[0]?.resolve();
  await new Promise(setImmediate);
  expect(open).toHaveLength(2);
  open[1]?.resolve();
  await new Promise(setImmediate);
  expect(open).toHaveLength(2);
});

test('closed, it waits for the round that runs and begins no other', async () => {
  let rounds = 0;
  const { promise, resolve } = Promise.withResolvers<void>();
  const work = new Rounds(() => {
    rounds += 1;
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
  expect(rounds).toBe(1);
});
