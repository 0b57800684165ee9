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
