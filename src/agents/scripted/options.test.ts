import { expect, test } from 'vitest';
import { scriptedAgent } from './adapter.ts';
import { parseScriptedOptions, SCRIPTED_DEFAULTS } from './options.ts';

test('an option that is not set has its default', () => {
  expect(parseScriptedOptions(undefined)).toEqual(SCRIPTED_DEFAULTS);
  expect(parseScriptedOptions({ ids: 'rotating', dir: 'x' })).toEqual({
    ...SCRIPTED_DEFAULTS,
    ids: 'rotating',
    dir: 'x',
  });
});

test.each([
  [{ id: 'issued' }, /no option "id"; known are ids/],
  [{ ids: 'random' }, /"ids" is one of issued, assigned, rotating/],
  [{ lockMs: '5' }, /"lockMs" is a number/],
  [{ lockMs: -1 }, /"lockMs" is a number from 0 on/],
  [{ window: Number.NaN }, /"window" is a number/],
  [{ tied: 1 }, /"tied" is a boolean/],
  [{ maxPromptTokens: 'many' }, /"maxPromptTokens" is a number/],
  [{ hollowRotation: true }, /needs "ids": "rotating"/],
  [{ ids: 'assigned', nameLate: true }, /not possible with assigned ids/],
  [[], /an object/],
  ['fast', /an object/],
])('%j is refused with the reason', (options, why) => {
  const invalid = expect.objectContaining({ code: 'invalid', message: expect.stringMatching(why) });
  expect(() => scriptedAgent({ name: 'x', options: options as never })).toThrow(invalid);
});
