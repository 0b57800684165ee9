import { expect, test } from 'vitest';
import type { ThroughlineError } from '../../../src/core/errors.ts';
import { Home } from '../support/home.ts';

test.each([[''], [' '], [7], ['ann\ud800'], ['x'.repeat(513)]])(
  '%j is nobody, so that no two can be one',
  async (owner) => {
    await using home = new Home();
    const tl = await home.open();
    let fault: ThroughlineError | null = null;
    try {
      tl.as(owner as string);
    } catch (error) {
      fault = error as ThroughlineError;
    }
    expect(fault).toMatchObject({ code: 'invalid', message: expect.stringMatching(/owner/) });
  },
);

test('an owner that an older version has stored stays within reach, and nobody new gets such a name', async () => {
  await using home = new Home();
  const tl = await home.open();
  const stored = tl.engine.as('zoe\u0301', 'key 1');
  await stored.ensure({ key: 'chat' });
  expect((await stored.list()).map(({ key }) => key)).toEqual(['chat']);
  expect(await tl.tasks.as('zoe\u0301', 'key 1').run({ goal: 'x', gate: 'true' })).toMatchObject([{ state: 'done' }]);
  expect(() => tl.as('zoe\u0301')).toThrow('decomposed');
  expect(() => tl.engine.as('..')).toThrow('An owner must not be ".."');
});
