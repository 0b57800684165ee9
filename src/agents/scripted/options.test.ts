import { expect, test } from 'vitest';
import { scriptedAgent } from './adapter.ts';
import { parseScriptedOptions, SCRIPTED_DEFAULTS } from './options.ts';

test('an option that is not set has its default', () => {
  expect(parseScriptedOptions('a', undefined)).toEqual(SCRIPTED_DEFAULTS);
  expect(parseScriptedOptions('a', { ids: 'rotating', dir: 'x' })).toEqual({
    ...SCRIPTED_DEFAULTS,
    ids: 'rotating',
    dir: 'x',
  });
});

test.each([
  [{ id: 'issued' }, /"agents\.x\.options\.id" is not known; known are ids/],
  [{ ids: 'random' }, /ids" must be one of issued, assigned, rotating/],
  [{ lockMs: '5' }, /lockMs" must be a number, 0 or more/],
  [{ lockMs: -1 }, /lockMs" must be a number, 0 or more/],
  [{ window: Number.NaN }, /window" must be a number/],
  [{ tied: 1 }, /tied" must be true or false/],
  [{ maxPromptTokens: 'many' }, /maxPromptTokens" must be a number/],
  [{ hollowRotation: true }, /needs "ids": "rotating"/],
  [{ ids: 'assigned', nameLate: true }, /not possible with assigned ids/],
  [[], /an object/],
  ['fast', /an object/],
])('%j is refused with the reason', (options, why) => {
  const invalid = expect.objectContaining({ code: 'invalid', message: expect.stringMatching(why) });
  expect(() => scriptedAgent({ name: 'x', options: options as never })).toThrow(invalid);
});
