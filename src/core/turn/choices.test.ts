import { expect, test } from 'vitest';
import { faultOf } from '../../../test/values/thrown.ts';
import { changeChoices, howToChoose, keptFor, mergeChoices, parseChoices } from './choices.ts';

test('the nearer choice wins, also for each config option', () => {
  const below = { model: 'a', mode: 'plan', config: { effort: 'low', fast: true } };
  expect(mergeChoices(below, { model: 'b', config: { effort: 'high' } })).toEqual({
    ...{ model: 'b', mode: 'plan', config: { effort: 'high', fast: true } },
  });
  expect(mergeChoices(undefined, {})).toEqual({});
});

test('a conversation keeps its choices for one agent, and null removes one', () => {
  const kept = changeChoices({}, { model: 'a', config: { effort: 'low' } }, 'claude');
  expect(kept).toEqual({ agent: 'claude', model: 'a', config: { effort: 'low' } });
  expect(changeChoices(kept, { mode: 'plan', config: {} }, 'claude')).toEqual({
    agent: 'claude',
    model: 'a',
    mode: 'plan',
  });
  expect(changeChoices(kept, { model: null, config: null }, 'claude')).toEqual({});
  expect(changeChoices(kept, { model: 'b' }, 'codex')).toEqual({ agent: 'codex', model: 'b' });
  expect(keptFor(kept, 'claude')).toEqual({ model: 'a', config: { effort: 'low' } });
  expect([keptFor(kept, 'codex'), keptFor({}, 'claude')]).toEqual([undefined, undefined]);
});

test.each([
  [{ model: '' }, '"model" must be a non-empty text, or null, not "".'],
  [{ mode: 7 }, '"mode" must be a non-empty text, or null, not 7.'],
  [{ config: { effort: 3 } }, '"config.effort" must be a non-empty text, or true or false, not 3.'],
])('%j is refused', (given, message) => {
  expect(faultOf(() => parseChoices(given))).toMatchObject({ code: 'invalid', message });
});

test.each([
  ['of a turn', { mode: 'nope' }, {}, true, 'Choose another value, or leave out "mode".'],
  [
    'of several',
    { mode: 'nope', config: { a: 'b' } },
    {},
    true,
    'Choose another value, or leave out "mode" and "config" (--set).',
  ],
  ['of an agent that has none', { mode: 'nope' }, {}, false, 'Leave out "mode".'],
  ['of a conversation', {}, { model: 'nope' }, true, 'Change or remove "model" of the conversation.'],
  [
    'of both',
    { mode: 'nope' },
    { model: 'nope' },
    true,
    'Choose another value, or leave out "mode". Change or remove "model" of the conversation.',
  ],
])('a choice %s that the agent does not have is named', (_, own, kept, hasOthers, says) => {
  expect(howToChoose(own, kept, hasOthers)).toBe(`Nothing was sent. ${says}`);
});
