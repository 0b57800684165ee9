import { expect, test } from 'vitest';
import type { ThroughlineError } from '../../../src/core/errors.ts';
import { Home } from '../support/home.ts';

test.each([[''], [' '], [7], ['ann\ud800'], ['x'.repeat(513)]])('%j is refused as an owner', async (owner) => {
  await using home = new Home();
  const tl = await home.open();
  let thrown: ThroughlineError | null = null;
  try {
    tl.as(owner as string);
  } catch (error) {
    thrown = error as ThroughlineError;
  }
  expect(thrown).toMatchObject({ code: 'invalid', message: expect.stringMatching(/owner/) });
});
