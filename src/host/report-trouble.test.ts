import { expect, test, vi } from 'vitest';
import { ThroughlineError } from '../core/errors.ts';
import { reportTrouble, seldom } from './report-trouble.ts';

const FULL = new ThroughlineError('storage_full', 'No room.', { hint: 'Make some.' });

/** What is written to stderr meanwhile. */
function writtenBy(work: () => void): string {
  using stderr = vi.spyOn(process.stderr, 'write').mockReturnValue(true);
  work();
  return stderr.mock.calls.map(([text]) => text).join('');
}

test('trouble is told at once, and while it lasts only now and then; another one is told apart', () => {
  const told: string[] = [];
  const tell = seldom(({ code }) => void told.push(code), 1_000);
  let time = 5_000;
  using _ = vi.spyOn(performance, 'now').mockImplementation(() => time);
  for (; time < 7_500; time += 100) tell(FULL);
  tell(new ThroughlineError('storage_busy', 'Locked.'));
  expect(told).toEqual(['storage_full', 'storage_full', 'storage_full', 'storage_busy']);
});

test('it says what to do', () => {
  expect(writtenBy(() => reportTrouble(FULL))).toBe('throughline: what is being done waits. No room. Make some.\n');
});

test('a listener that throws is a fault of its own, and stops nothing', () => {
  const tell = seldom(() => {
    throw new Error('as asked');
  });
  expect(writtenBy(() => tell(FULL))).toContain('as asked');
});
