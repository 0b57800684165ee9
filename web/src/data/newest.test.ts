import { expect, test } from 'vitest';
import { Newest } from './newest.ts';

test('an answer that a newer one about the same has overtaken is left out, and no other', async () => {
  const newest = new Newest();
  const slow = Promise.withResolvers<string>();
  const first = newest.of('turn', slow.promise);
  const between = newest.of('turn', Promise.resolve('second'));
  expect(await between).toBe('second');
  expect(await newest.of('sessions', Promise.resolve('other'))).toBe('other');
  slow.resolve('first');
  expect(await first).toBe(null);
  // As long as nothing newer is here, an old answer is better than none.
  const never = newest.of('turn', new Promise<string>(() => {}));
  expect(await newest.of('turn', Promise.resolve('third'))).toBe('third');
  expect(never).toBeInstanceOf(Promise);
  const old = newest.of('turn', Promise.resolve('fourth'));
  void newest.of('turn', new Promise<string>(() => {}));
  expect(await old).toBe('fourth');
});
