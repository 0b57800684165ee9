import fc from 'fast-check';
import { expect, test } from 'vitest';
import { faultOf } from '../../../test/values/thrown.ts';
import { parseSettings, parseSettingsOfFile } from './settings.ts';

test('settings may be empty', () => {
  expect(parseSettings({})).toEqual({
    ...{ agents: {}, restore: {}, sandbox: {}, lock: {}, permissions: {}, limits: {}, tasks: {}, turns: {} },
  });
});

test('all settings are accepted', () => {
  const settings = parseSettings({
    $schema: 'throughline.schema.json',
    store: 'sqlite:here.db',
    defaultAgent: 'a',
    agents: { a: { adapter: 'scripted', env: { HOME: '/' }, options: { any: 'thing' } } },
    restore: { policy: 'auto' },
    sandbox: { root: 'rooms' },
    lock: { totalMs: 5 },
    permissions: { mode: 'ask', waitSeconds: 1.5 },
    limits: { turnSeconds: 60, stallSeconds: null },
    tasks: { parallel: 2 },
    turns: { parallel: 8, perOwner: 6 },
  });
  expect(settings).toEqual({
    store: 'sqlite:here.db',
    defaultAgent: 'a',
    agents: { a: { adapter: 'scripted', env: { HOME: '/' }, options: { any: 'thing' } } },
    restore: { policy: 'auto' },
    sandbox: { root: 'rooms' },
    lock: { totalMs: 5 },
    permissions: { mode: 'ask', waitSeconds: 1.5 },
    limits: { turnSeconds: 60, stallSeconds: null },
    tasks: { parallel: 2 },
    turns: { parallel: 8, perOwner: 6 },
  });
});

test('an agent that is a program may have a command and a model', () => {
  for (const adapter of ['claude-sdk', 'claude-cli']) {
    const agent = {
      adapter,
      command: ['claude', '--x'],
      package: 'p',
      model: 'm',
      env: {},
      limits: { turnSeconds: 9 },
      options: {},
    };
    expect(parseSettings({ agents: { a: agent } }).agents.a).toEqual(agent);
  }
});

test.each([
  [7, 'Settings: the settings must be an object.'],
  [{ agnets: {} }, /^Settings: "agnets" is not known; known are \$schema, store/],
  [{ store: '' }, 'Settings: "store" must be "sqlite:PATH" or "postgres://USER@HOST/DATABASE".'],
  [{ agents: [] }, 'Settings: "agents" must be an object, not [].'],
  [{ agents: { a: {} } }, /^Settings: "agents\.a\.adapter" must be one of scripted, .*not nothing\.$/],
  [{ agents: { a: { adapter: 1n } } }, /"agents\.a\.adapter" must be one of .* not a bigint/],
  [
    { agents: { a: { adapter: 'scripted', env: { A: 1 } } } },
    'Settings: "agents.a.env" must be an object whose values are texts.',
  ],
  [{ agents: { a: { adapter: 'scripted', options: [] } } }, 'Settings: "agents.a.options" must be an object, not [].'],
  [{ agents: { a: { adapter: 'scripted', model: 'x' } } }, /^Settings: "agents\.a\.model" is not known/],
  [{ agents: { a: { adapter: 'claude-sdk', command: 'claude' } } }, /"agents\.a\.command" must be a list of texts/],
  [{ agents: { a: { adapter: 'claude-sdk', command: [''] } } }, /"agents\.a\.command" must be a list of texts/],
  [{ agents: { a: { adapter: 'claude-sdk', command: ['x', 1] } } }, /"agents\.a\.command" must be a list of texts/],
  [
    { agents: { a: { adapter: 'claude-sdk', package: '' } } },
    'Settings: "agents.a.package" must be a non-empty text, not "".',
  ],
  [{ defaultAgent: 'a' }, 'Settings: "defaultAgent" names "a", which is not among the agents.'],
  [{ defaultAgent: 'toString' }, /which is not among the agents/],
  [{ sandbox: { rot: 'x' } }, /^Settings: "sandbox\.rot" is not known; known are root/],
  [{ lock: { totalMs: -1 } }, 'Settings: "lock.totalMs" must be a whole number of milliseconds, not -1.'],
  [{ lock: { total: 1 } }, /^Settings: "lock\.total" is not known/],
  [{ permissions: { mode: 'maybe' } }, 'Settings: "permissions.mode" must be one of ask, deny, not "maybe".'],
  [{ permissions: { waitSeconds: -1 } }, /^Settings: "permissions\.waitSeconds" must be a number of seconds/],
  [{ limits: { turnSeconds: 0 } }, /^Settings: "limits\.turnSeconds" must be a number of seconds above 0, or null/],
  [{ agents: { a: { adapter: 'acp', limits: { turn: 1 } } } }, /^Settings: "agents\.a\.limits\.turn" is not known/],
  [{ restore: { policy: 'x' } }, /^Settings: "restore\.policy" must be one of/],
  [
    { agents: { a: { adapter: 'acp', env: { KEY: 'x\ud800' } } } },
    'Settings: "agents.a.env.KEY" contains an unpaired surrogate, U+D800 at index 1.',
  ],
  [JSON.parse('{"__proto__": {}}'), /"__proto__" is not known/],
])('the wrong value is named: %#', (value, message) => {
  const fault = faultOf(() => parseSettings(value));
  expect(fault?.code).toBe('invalid');
  if (typeof message === 'string') expect(fault?.message).toBe(message);
  else expect(fault?.message).toMatch(message);
});

test('an agent may have the name of a property that every object has, and no prototype is changed', () => {
  const names = ['__proto__', 'constructor', 'toString'];
  const agents = JSON.parse(`{${names.map((name) => `"${name}": {"adapter": "scripted"}`).join(',')}}`);
  const settings = parseSettings({ agents, defaultAgent: '__proto__' });
  expect(Object.keys(settings.agents)).toEqual(names);
  expect(Object.getPrototypeOf(settings.agents)).toBe(Object.prototype);
  expect(({} as Record<string, unknown>).adapter).toBeUndefined();
});

test('any value is accepted or refused as invalid, and nothing else is thrown', () => {
  const anything = fc.anything({ withBigInt: true, withNullPrototype: true });
  const agent = fc.record(
    { adapter: fc.oneof(fc.constant('scripted'), anything), env: anything },
    { requiredKeys: [] },
  );
  const near = fc.record(
    { agents: fc.oneof(anything, fc.dictionary(fc.string(), agent)), restore: anything, sandbox: anything },
    { requiredKeys: [] },
  );
  fc.assert(
    fc.property(fc.oneof(anything, near), (value) => {
      const fault = faultOf(() => parseSettings(value));
      if (fault !== null) expect(fault.code).toBe('invalid');
    }),
    { numRuns: 1_000 },
  );
});

test('in a file, a mistake in the settings of an agent is a part of it, unless its adapter is wrong', () => {
  const right = { adapter: 'scripted', options: { any: 'thing' } };
  const parsed = parseSettingsOfFile({
    defaultAgent: 'a',
    agents: { a: right, b: { adapter: 'acp', agent: 'goose' } },
  });
  expect(parsed.agents).toMatchObject({ a: right, b: { adapter: 'acp', env: {}, options: {} } });
  expect(parsed.agents.a).not.toHaveProperty('wrong');
  expect(parsed.agents.b?.wrong?.message).toMatch(/^Settings: "agents\.b\.agent" is not known/);
  for (const agents of [{ b: { adapter: 'nope' } }, { b: 7 }, 7, { 'a\nb': { adapter: 'acp', agent: 'x' } }]) {
    expect(faultOf(() => parseSettingsOfFile({ agents }))).toMatchObject({ code: 'invalid' });
  }
});
