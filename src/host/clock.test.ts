import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { systemClock } from './clock.ts';

test('monotonic time can be compared between two processes of one boot', () => {
  const clock = new URL('clock.ts', import.meta.url).href;
  const script = `const { systemClock } = await import(${JSON.stringify(clock)}); console.log(systemClock.monotonic())`;
  const before = systemClock.monotonic();
  const other = Number(execFileSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8' }));
  const after = systemClock.monotonic();
  expect(other).toBeGreaterThan(before);
  expect(other).toBeLessThan(after);
});

test('monotonic time counts milliseconds and never goes back', async () => {
  const outer = performance.now();
  const begun = systemClock.monotonic();
  const inner = performance.now();
  await new Promise((resolve) => setTimeout(resolve, 50));
  const least = performance.now() - inner;
  const passed = systemClock.monotonic() - begun;
  const most = performance.now() - outer;
  // Both measure the same time; one millisecond is for rounding.
  expect(passed).toBeGreaterThan(least - 1);
  expect(passed).toBeLessThan(most + 1);
  let last = 0;
  for (let n = 0; n < 1_000; n += 1) {
    const now = systemClock.monotonic();
    expect(now).toBeGreaterThanOrEqual(last);
    last = now;
  }
});
