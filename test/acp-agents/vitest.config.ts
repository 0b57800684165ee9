import { join } from 'node:path';
import { defineConfig } from 'vitest/config';

// Apart from the project's own, which runs whatever ends in .test.ts: these need agents that `npm test` does not install.
export default defineConfig({
  root: join(import.meta.dirname, '../..'),
  test: { include: ['test/acp-agents/scenarios.ts'], pool: 'forks', maxWorkers: 1, hookTimeout: 30_000 },
});
