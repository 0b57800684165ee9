import fc from 'fast-check';
import { expect, test } from 'vitest';
import { restoreSettings } from '../../../test/values/arbitrary.ts';
import { faultOf } from '../../../test/values/thrown.ts';
import { DEFAULT_RESTORE, effectiveRestore, parseRestore, parseTurnRestore } from './restore-settings.ts';

test('valid settings are accepted unchanged, and fields that are left out stay left out', () => {
  fc.assert(
    fc.property(restoreSettings, (value) => {
      fc.pre(value.policy !== 'off' || value.rung === null);
      expect(parseRestore(value)).toEqual(value);
    }),
  );
  expect(parseRestore({ policy: 'auto', rung: undefined })).toEqual({ policy: 'auto' });
  expect([undefined, null, {}].map((value) => parseRestore(value))).toEqual([{}, {}, {}]);
});

test.each([
  [7, '"restore" must be an object, not 7.'],
  [[], '"restore" must be an object, not [].'],
  [{ policy: 'never' }, '"restore.policy" must be one of required, auto, off, not "never".'],
  [{ rung: 'new' }, /^"restore\.rung" must be one of live, resume, rehydrate, transcript, replay/],
  [{ budgetTokens: -1 }, '"restore.budgetTokens" must be a whole number, 0 or more, or null, not -1.'],
  [{ budgetTokens: 1n }, '"restore.budgetTokens" must be a whole number, 0 or more, or null, not a bigint.'],
  [{ lastTurns: 1.5 }, '"restore.lastTurns" must be a whole number, 0 or more, or null, not 1.5.'],
  [{ allowTools: 'yes' }, '"restore.allowTools" must be true or false, not "yes".'],
  [{ budget: 5 }, /^"restore\.budget" is not known; known are policy, rung/],
  [{ policy: 'off', rung: 'replay' }, /^The policy "off" carries no history/],
  // As a setting, it would replace the session with every prompt.
  [{ rebuild: true }, /^"restore\.rebuild" is not known/],
  [JSON.parse('{"__proto__": {"policy": "auto"}}'), /^"restore\.__proto__" is not known/],
])('the wrong value is named: %#', (value, message) => {
  const fault = faultOf(() => parseRestore(value));
  expect(fault?.code).toBe('invalid');
  if (typeof message === 'string') expect(fault?.message).toBe(message);
  else expect(fault?.message).toMatch(message);
});

test('the settings of a turn override those of its conversation, which override the general settings', () => {
  const settings = { ...DEFAULT_RESTORE, budgetTokens: 5 };
  expect(effectiveRestore(settings, {})).toEqual(settings);
  expect(effectiveRestore(settings, { policy: 'auto', lastTurns: 2 }, { lastTurns: 1 })).toEqual({
    ...settings,
    policy: 'auto',
    lastTurns: 1,
  });
});

test('a rung that a turn names is used above a conversation that is "off", and "off" above a rung', () => {
  expect(effectiveRestore(DEFAULT_RESTORE, { policy: 'off' }, { rung: 'replay' })).toMatchObject({
    policy: 'required',
    rung: 'replay',
  });
  expect(effectiveRestore(DEFAULT_RESTORE, { rung: 'replay' }, { policy: 'off' })).toMatchObject({
    policy: 'off',
    rung: null,
  });
});

test('null undoes a rung of a lower level, at every level', () => {
  const replay = { ...DEFAULT_RESTORE, rung: 'replay' } as const;
  expect(effectiveRestore(replay, {}, { rung: null }).rung).toBeNull();
  expect(effectiveRestore(replay, { rung: null }).rung).toBeNull();
  expect(effectiveRestore(DEFAULT_RESTORE, { rung: 'replay' }, { rung: null }).rung).toBeNull();
});

test('a rung of a conversation is used above settings that are "off", as that of a turn is', () => {
  const off = { ...DEFAULT_RESTORE, policy: 'off' } as const;
  expect(effectiveRestore(off, { rung: 'transcript' })).toMatchObject({ policy: 'required', rung: 'transcript' });
});

test('a rebuild is used above a lower level that is "off" or only continues', () => {
  for (const below of [{ policy: 'off' }, { rung: 'resume' }, { rung: 'live' }] as const) {
    const built = effectiveRestore(DEFAULT_RESTORE, below, { rebuild: true });
    expect(built).toMatchObject({ policy: 'required', rung: null, rebuild: true });
  }
  expect(effectiveRestore(DEFAULT_RESTORE, { rung: 'replay' }, { rebuild: true }).rung).toBe('replay');
});

test.each([
  [{ rebuild: 'yes' }, '"restore.rebuild" must be true or false, not "yes".'],
  [{ rebuild: true, policy: 'off' }, /^The policy "off" carries no history, so it cannot rebuild a session/],
  [{ rebuild: true, rung: 'live' }, /^A rebuild opens a new session, and the rung "live" continues/],
  [{ rebuild: true, rung: 'resume' }, /^A rebuild opens a new session, and the rung "resume" continues/],
])('the wrong value of a turn is named: %#', (value, message) => {
  const fault = faultOf(() => parseTurnRestore(value));
  expect(fault).toMatchObject({
    code: 'invalid',
    message: typeof message === 'string' ? message : expect.stringMatching(message),
  });
});

test('any value is accepted or refused as invalid, and nothing else is thrown', () => {
  const anything = fc.anything({ withBigInt: true, withNullPrototype: true });
  const near = fc.record(
    { policy: anything, rung: anything, lastTurns: anything, allowTools: anything },
    { requiredKeys: [] },
  );
  fc.assert(
    fc.property(fc.oneof(anything, near), (value) => {
      const fault = faultOf(() => parseRestore(value, 'settings.restore'));
      if (fault === null) return;
      expect(fault.code).toBe('invalid');
      expect(fault.message).toMatch(/^"settings\.restore|^The policy/);
    }),
    { numRuns: 1_000 },
  );
});
