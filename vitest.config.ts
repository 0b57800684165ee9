import { defineConfig } from 'vitest/config';
import LongestFirst from './scripts/test-order.js';

export default defineConfig({
  test: {
    include: ['src/**/*.test.ts', 'test/**/*.test.ts'],
    // Processes and not threads: tests start children, open databases and change the environment.
    pool: 'forks',
    // One more than the cores of a small machine: much of the time is spent waiting for agents to start, and to end.
    maxWorkers: 3,
    sequence: { sequencer: LongestFirst },
    // Limits for what hangs, and not for what is slow: a busy machine may take ten times as long. What waits for something (`until`)
    // gives up before that, and says what it waited for.
    testTimeout: 180_000,
    hookTimeout: 180_000,
    teardownTimeout: 60_000,
    expect: { poll: { timeout: 120_000 } },
    globals: false,
  },
});
