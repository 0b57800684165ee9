// Runs with every test file (vitest.config.ts): notes the processor time that it took, for the table at the end of `npm test`.
import { afterAll } from 'vitest';
import { processorSeconds } from '../scripts/test-parts.js';

declare module 'vitest' {
  interface TaskMeta {
    processorSeconds?: number;
  }
}

const before = processorSeconds();
// biome-ignore lint/correctness/noEmptyPattern: vitest wants a pattern here, and takes from the context what it names.
afterAll(({}, file) => {
  file.meta.processorSeconds = processorSeconds() - before;
});
