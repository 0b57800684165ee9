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
  const begun = systemClock.monotonic();
  await new Promise((resolve) => setTimeout(resolve, 50));
  const passed = systemClock.monotonic() - begun;
  expect(passed).toBeGreaterThan(45);
  expect(passed).toBeLessThan(5_000);
  let last = 0;
  for (let n = 0; n < 1_000; n += 1) {
    const now = systemClock.monotonic();
    expect(now).toBeGreaterThanOrEqual(last);
    last = now;
  }
});
