import { expect, test } from 'vitest';
import { Pace } from './pace.ts';

/** An event loop that the test drives turn by turn. Time passes only during work. */
function loop() {
  let now = 0;
  let later: (() => void)[] = [];
  const pace = new Pace(
    () => now,
    (call) => later.push(call),
  );
  return {
    pace,
    work: (ms: number) => {
      now += ms;
    },
    async turn(): Promise<void> {
      const calls = later;
      later = [];
      for (const call of calls) call();
      for (let i = 0; i < 10; i += 1) await Promise.resolve();
    },
  };
}

test('short work never waits', () => {
  const { pace, work } = loop();
  expect(pace.isOver).toBe(false);
  work(9);
  expect(pace.isOver).toBe(false);
});

test('long work waits for the next turn of the event loop', async () => {
  const { pace, work, turn } = loop();
  const done: number[] = [];
  const steps = function* () {
    for (let i = 1; i <= 5; i += 1) {
      work(4);
      done.push(i);
      yield;
    }
    return 'all';
  };
  const running = pace.run(steps());
  await Promise.resolve();
  expect(done).toEqual([1, 2, 3]);
  await turn();
  expect(done).toEqual([1, 2, 3, 4, 5]);
  expect(await running).toBe('all');
});

test('several tasks share the time slice of an event loop turn, one after the other', async () => {
  const { pace, work, turn } = loop();
  const done: string[] = [];
  const steps = function* (name: string) {
    for (let i = 0; i < 9; i += 1) {
      work(10);
      done.push(name);
      yield;
    }
  };
  for (const name of ['a', 'b', 'c']) void pace.run(steps(name));
  expect(done).toEqual(['a']);
  for (let i = 0; i < 6; i += 1) await turn();
  expect(done).toEqual(['a', 'a', 'b', 'c', 'a', 'b', 'c']);
});

test('waiting calls run in order, as many in one turn as fit into its time slice', async () => {
  const { pace, work, turn } = loop();
  const order: string[] = [];
  const read = async (name: string) => {
    if (pace.isOver) await pace.next();
    work(4);
    order.push(name);
  };
  expect(pace.isOver).toBe(false);
  work(10);
  const all = ['a', 'b', 'c', 'd', 'e'].map(read);
  expect(order).toEqual([]);
  const passing = turn();
  all.push(read('f')); // in a new slice, before the waiting calls have run
  await passing;
  expect(order).toEqual(['a', 'b', 'c']);
  await turn();
  expect(order).toEqual(['a', 'b', 'c', 'd', 'e', 'f']);
  await Promise.all(all);
});
