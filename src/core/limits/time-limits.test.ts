import { expect, test } from 'vitest';
import { DEFAULT_TIME_LIMITS, effectiveTimes, judgeTime, parseTimes, type TimeLimits } from './time-limits.ts';

const LIMITS: TimeLimits = { turnSeconds: 100, stallSeconds: 30, noticeSeconds: 10 };
const NONE: TimeLimits = { turnSeconds: null, stallSeconds: null, noticeSeconds: null };
const passed = (begin: number, heard: number, noticed = false) => ({
  ...{ sinceBegin: begin * 1000, sinceHeard: heard * 1000, noticed },
});

test.each([
  ['at first, the notice is next', LIMITS, passed(0, 0), { due: 'nothing', inMs: 10_000 }],
  ['whatever the agent sends restarts the count', LIMITS, passed(50, 4), { due: 'nothing', inMs: 6_000 }],
  ['a silence is reported, with the time until the end', LIMITS, passed(12, 10), { due: 'notice', endsInMs: 20_000 }],
  ['the end of the turn may come sooner', LIMITS, passed(95, 10), { due: 'notice', endsInMs: 5_000 }],
  ['a silence is reported once', LIMITS, passed(12, 11, true), { due: 'nothing', inMs: 19_000 }],
  ['near its end, the turn is next', LIMITS, passed(98, 1), { due: 'nothing', inMs: 2_000 }],
  ['without limits nothing is due', NONE, passed(9e9, 9e9), { due: 'nothing', inMs: null }],
  ['only a notice, and no limit', { ...NONE, noticeSeconds: 10 }, passed(10, 10), { due: 'notice', endsInMs: null }],
  [
    'only a notice, which was already given',
    { ...NONE, noticeSeconds: 10 },
    passed(10, 10, true),
    { due: 'nothing', inMs: null },
  ],
])('%s', (_, limits, so, verdict) => {
  expect(judgeTime(limits, so, null)).toEqual(verdict);
});

test('the end says what happened, and the setting to change', () => {
  expect(judgeTime(LIMITS, passed(100, 1), null)).toMatchObject({
    due: 'end',
    failure: {
      code: 'timed_out',
      message: expect.stringContaining('100 seconds'),
      hint: expect.stringContaining('turnSeconds'),
    },
  });
  expect(judgeTime(LIMITS, passed(40, 30, true), 'npm test')).toMatchObject({
    due: 'end',
    failure: { code: 'stalled', message: expect.stringContaining('30 seconds while it ran npm test') },
  });
});

test('the most specific setting is used, even if it removes the limit', () => {
  const agent = { turnSeconds: 5, stallSeconds: null };
  expect(effectiveTimes(DEFAULT_TIME_LIMITS, agent, { turnSeconds: 9 })).toEqual({
    ...{ turnSeconds: 9, stallSeconds: null, noticeSeconds: 120 },
  });
});

test('limits of a turn are checked', () => {
  expect(parseTimes({ turnSeconds: 1.5, stallSeconds: null, noticeSeconds: undefined })).toEqual({
    ...{ turnSeconds: 1.5, stallSeconds: null },
  });
  for (const wrong of [{ turnSeconds: 0 }, { turnSeconds: '5' }, { stallSeconds: -1 }, { minutes: 1 }, [], null]) {
    expect(() => parseTimes(wrong), JSON.stringify(wrong)).toThrow(/^"limits/);
  }
});
