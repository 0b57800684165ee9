import { expect, test, vi } from 'vitest';
import { ThroughlineError } from '../core/errors.ts';
import { systemClock } from './clock.ts';
import { bugReport, reportLoss, reportTrouble, seldom } from './report.ts';

const error = new Error('said \u001b[2J\u009b1m\u0007\nand more');
const FULL = new ThroughlineError('storage_full', 'The disk is full.', { hint: 'Free some space.' });

test('a bug is reported in one line without control characters', () => {
  expect(bugReport(error, 'claiming', false)).toBe(
    'throughline: Internal error while claiming: Error: said [2J1m and more\n',
  );
});

test('the stack is printed only on request', () => {
  const report = bugReport(error, 'claiming', true);
  expect(report).toContain('\nand more\n    at ');
  expect(report).not.toMatch(/[^\P{Cc}\n]/u);
});

test('a report cannot control a terminal, or reorder its text', () => {
  const message = 'Cannot open \u202egnp.\u001b[31m\u009b2Jdb\u2028.';
  const shown = 'Cannot open \\u{202e}gnp.[31m2Jdb\\u{2028}.';
  expect(bugReport(new Error(message), 'x', false)).toContain(shown);
  expect(writtenBy(() => reportTrouble(new ThroughlineError('storage_full', message)))).toContain(shown);
  expect(writtenBy(() => reportLoss({ code: 'storage_lost', message, hint: 'Look.' }, false))).toContain(shown);
});

test('any thrown value can be reported', () => {
  for (const thrown of [undefined, null, 7, 'text', {}]) expect(bugReport(thrown, 'x', true)).toMatch(/while x: .+\n$/);
});

/** What is written to stderr meanwhile. */
function writtenBy(work: () => void): string {
  using stderr = vi.spyOn(process.stderr, 'write').mockReturnValue(true);
  work();
  return stderr.mock.calls.map(([text]) => text).join('');
}

test('an error is reported at once, and repeated seldom while it lasts; another one is reported separately', () => {
  const told: string[] = [];
  let time = 5_000;
  const tell = seldom(({ code }) => void told.push(code), { now: () => 0, monotonic: () => time }, 1_000);
  for (; time < 7_500; time += 100) tell(FULL);
  tell(new ThroughlineError('storage_busy', 'Locked.'));
  expect(told).toEqual(['storage_full', 'storage_full', 'storage_full', 'storage_busy']);
});

test('an error is reported with its hint', () => {
  expect(writtenBy(() => reportTrouble(FULL))).toBe(
    'throughline: Waiting for the storage. The disk is full. Free some space.\n',
  );
});

test('a listener that throws is reported, and stops nothing', () => {
  const tell = seldom(() => {
    throw new Error('as asked');
  }, systemClock);
  expect(writtenBy(() => tell(FULL))).toContain('as asked');
});
