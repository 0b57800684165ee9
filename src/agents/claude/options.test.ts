import { expect, test } from 'vitest';
import { faultOf } from '../../../test/values/thrown.ts';
import { parseClaudeOptions } from './options.ts';

test('options may be left out', () => {
  expect(parseClaudeOptions('a', {})).toEqual({ home: 'user', trustProject: false, mcpServers: [] });
  const all = {
    permissionMode: 'plan',
    settingSources: ['user'],
    home: 'sandbox',
    trustProject: true,
    window: 500_000,
    mcpServers: [{ name: 'notes', command: 'notes', args: ['-v'], env: [{ name: 'TOKEN', value: 'x' }] }],
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
  [{ mcpServers: [{ name: 'notes' }] }, /"agents\.a\.options\.mcpServers\[0\]\.command" must be a text/],
  [JSON.parse('{"__proto__": {}}'), /is not known/],
])('the fault of an option is named: %#', (options, message) => {
  const fault = faultOf(() => parseClaudeOptions('a', options));
  expect(fault?.code).toBe('invalid');
  expect(fault?.message).toMatch(message);
});
