import { join } from 'node:path';
import { defineConfig } from 'vitest/config';

// Not part of the configuration of the project, because these tests need agents that `npm run test:all` does not install.
export default defineConfig({
  root: join(import.meta.dirname, '../..'),
  test: { include: ['test/acp-agents/scenarios.ts'], pool: 'forks', maxWorkers: 1, hookTimeout: 30_000 },
});
