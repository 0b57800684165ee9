import { expect, test } from 'vitest';
import { faultOf } from '../../../test/values/thrown.ts';
import { parseClaudeOptions } from './options.ts';

test('options may be left out', () => {
  expect(parseClaudeOptions('a', {})).toEqual({ home: 'user', trustProject: false });
  const all = {
    permissionMode: 'plan',
    settingSources: ['user'],
    home: 'sandbox',
    trustProject: true,
    window: 500_000,
  };
  expect(parseClaudeOptions('a', all)).toEqual(all);
});

test.each([
  [{ permisionMode: 'plan' }, /"agents\.a\.options\.permisionMode" is not known/],
  [{ permissionMode: 'yolo' }, /must be one of default, /],
  [{ settingSources: 'user' }, /must be a list of user, project, local/],
  [{ settingSources: ['managed'] }, /must be a list of/],
  [{ home: null }, /must be user or sandbox, not /],
  [{ trustProject: 1 }, /must be true or false/],
  [{ window: 0 }, /must be a whole number of tokens, not 0/],
  [{ window: '1m' }, /must be a whole number of tokens/],
  [JSON.parse('{"__proto__": {}}'), /is not known/],
])('the fault of an option is named: %#', (options, message) => {
  const fault = faultOf(() => parseClaudeOptions('a', options));
  expect(fault?.code).toBe('invalid');
  expect(fault?.message).toMatch(message);
});
