import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['src/**/*.test.ts', 'test/**/*.test.ts'],
    // Processes and not threads: tests start children, open databases and change the environment.
    pool: 'forks',
    // One more than the cores of a small machine: much of the time is spent waiting for agents to start, and to end.
    maxWorkers: 3,
    testTimeout: 30_000,
    hookTimeout: 30_000,
    globals: false,
  },
});
