// Runs with every test file (vitest.config.ts): records its processor time, for the table at the end of a run.
import { afterAll } from 'vitest';
import { processorSeconds } from '../scripts/test-parts.js';

declare module 'vitest' {
  interface TaskMeta {
    processorSeconds?: number;
  }
}

const before = processorSeconds();
// biome-ignore lint/correctness/noEmptyPattern: vitest requires a destructuring pattern here.
afterAll(({}, file) => {
  file.meta.processorSeconds = processorSeconds() - before;
});
