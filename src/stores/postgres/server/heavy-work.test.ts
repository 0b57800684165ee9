import { expect, test } from 'vitest';
import { HeavyWork } from './heavy-work.ts';

/** Work that ends when it is told to. What has begun is in `begun`. */
function world(connections: number) {
  const heavy = new HeavyWork(connections);
  const begun: string[] = [];
  const ends = new Map<string, () => void>();
  const run = (owner: string, name: string) =>
    heavy.run(owner, () => {
      begun.push(name);
      return new Promise<void>((resolve) => ends.set(name, resolve));
    });
  const end = async (name: string) => {
    await new Promise(setImmediate);
    ends.get(name)?.();
    await new Promise(setImmediate);
  };
  /** Also what begins meanwhile. */
  const endAll = async () => {
    await new Promise(setImmediate);
    for (const name of begun) await end(name);
  };
  return { heavy, begun, run, end, endAll };
}

test('one owner runs at most two of four long verbs, and owners take turns', async () => {
  const { begun, run, end, endAll } = world(10);
  const all = ['a1', 'a2', 'a3', 'a4', 'b1', 'b2', 'c1'].map((name) => run(name[0] ?? '', name));
  await new Promise(setImmediate);
  expect(begun).toEqual(['a1', 'a2', 'b1', 'b2']);
  await end('a1');
  expect(begun.at(-1), 'the one who has none yet').toBe('c1');
  await end('b1');
  expect(begun.at(-1)).toBe('a3');
  await endAll();
  await Promise.all(all);
});

test('with one connection one long verb runs, and the next one runs when it has failed', async () => {
  const { heavy, run, end } = world(1);
  expect(heavy.most).toBe(1);
  await expect(heavy.run('a', () => Promise.reject(new Error('no')))).rejects.toThrow('no');
  const next = run('b', 'b1');
  await end('b1');
  await next;
});

test('an owner with many waiting verbs is refused, and other owners are not', async () => {
  const { run, endAll } = world(1);
  const first = run('a', 'a0');
  const waiting = Array.from({ length: 32 }, (_, index) => run('a', `a${index + 1}`));
  await expect(run('a', 'too many')).rejects.toMatchObject({ code: 'too_many' });
  const other = run('b', 'b1');
  await endAll();
  await Promise.all([first, other, ...waiting]);
});
