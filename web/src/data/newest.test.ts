import { expect, test } from 'vitest';
import { Newest } from './newest.ts';

test('an answer is dropped if a newer one about the same has arrived before it', async () => {
  const newest = new Newest();
  const slow = Promise.withResolvers<string>();
  const first = newest.of('turn', slow.promise);
  const between = newest.of('turn', Promise.resolve('second'));
  expect(await between).toBe('second');
  expect(await newest.of('sessions', Promise.resolve('other'))).toBe('other');
  slow.resolve('first');
  expect(await first).toBe(null);
  // A newer request without an answer drops nothing.
  const never = newest.of('turn', new Promise<string>(() => {}));
  expect(await newest.of('turn', Promise.resolve('third'))).toBe('third');
  expect(never).toBeInstanceOf(Promise);
  const old = newest.of('turn', Promise.resolve('fourth'));
  void newest.of('turn', new Promise<string>(() => {}));
  expect(await old).toBe('fourth');
});
