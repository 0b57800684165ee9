import { expect, test } from 'vitest';
import { holdStopSignals, onStopSignals } from './stop-signals.ts';

test('a held signal prints a note, and reaches the next listener', async () => {
  const notes: unknown[] = [];
  using _held = holdStopSignals({ note: (...pieces) => void notes.push(pieces.join('')) });
  process.emit('SIGINT', 'SIGINT');
  expect(notes).toEqual([expect.stringContaining('Press Ctrl-C again to leave at once')]);
  const heard = Promise.withResolvers<string>();
  const giveBack = onStopSignals({
    cancel: () => heard.resolve('cancel'),
    kill: () => heard.resolve('kill'),
    terminate: () => heard.resolve('terminate'),
  });
  expect(await heard.promise).toBe('cancel');
  giveBack();
});

test('holding ends with its scope, also when nobody listened', () => {
  const before = process.listenerCount('SIGINT');
  {
    using _held = holdStopSignals({ note: () => {} });
    expect(process.listenerCount('SIGINT')).toBe(before + 1);
  }
  expect(process.listenerCount('SIGINT')).toBe(before);
});
