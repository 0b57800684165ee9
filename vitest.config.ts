import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { defineConfig } from 'vitest/config';
import { ALONE, leftOut } from './scripts/test-areas.js';
import LongestFirst from './scripts/test-order.js';

// Tests start hundreds of Node processes. Each of them would compile the same sources again.
process.env.NODE_COMPILE_CACHE ??= join(import.meta.dirname, 'node_modules/.cache/throughline-tests');

const ALONE_FILES = ALONE.map((file) => `${file}.test.ts`);
const LEFT_OUT = leftOut(process.env).map((start) => `${start}**`);

// Sources that start a file beside them: the scripted agent, threads. Tests start the bundled ones (scripts/test-program.js), which takes
// two thirds of the time for the agent.
const STARTERS = /\/src\/(agents\/scripted\/adapter|stores\/sqlite\/(reading\/long-reads|backup\/copy))\.ts$/;
const IN_DIST = "new URL('../dist/index.cjs', 'file://' + process.env.THROUGHLINE_TEST_PROGRAM).href";
const bundled = {
  name: 'throughline: bundled programs and threads',
  transform: (code: string, id: string) => (STARTERS.test(id) ? code.replaceAll('import.meta.url', IN_DIST) : null),
};

export default defineConfig({
  plugins: [bundled],
  test: {
    // Processes and not threads: tests start children, open databases and change the environment.
    pool: 'forks',
    // Every file that such a process runs leaves modules and compiled code in its heap. With V8's usual limits, the collector goes through
    // all of that again and again: with these, 1,887 tests took 7 % less processor time. A process then has up to 900 MB.
    execArgv: ['--min-semi-space-size=32', '--max-semi-space-size=64', '--initial-old-space-size=1024'],
    globalSetup: ['./scripts/test-program.js', './scripts/test-folder.js'],
    // More than there are cores: some of the time is spent waiting for agents to start, and to end. With seven on two cores, 14 files of
    // commands, servers and agents took 83 s, and 95 s with five (one run each). With seven, both cores are busy.
    maxWorkers: availableParallelism() + 5,
    sequence: { sequencer: LongestFirst },
    // Limits for what hangs, and not for what is slow: a busy machine may take ten times as long. What waits for something (`until`)
    // gives up before that, and says what it waited for. The longest test takes a minute and a half on two cores.
    testTimeout: 600_000,
    hookTimeout: 600_000,
    teardownTimeout: 60_000,
    expect: { poll: { timeout: 120_000 } },
    globals: false,
    projects: [
      {
        extends: true,
        test: {
          name: 'alone',
          setupFiles: ['test/temporary-files.ts', 'test/processor-time.ts'],
          include: ALONE_FILES,
          exclude: ['**/node_modules/**', ...LEFT_OUT],
        },
      },
      {
        extends: true,
        test: {
          name: 'together',
          isolate: false,
          setupFiles: ['test/temporary-files.ts', 'test/processor-time.ts', 'test/shared-process.ts'],
          include: ['src/**/*.test.ts', 'web/src/**/*.test.ts', 'test/**/*.test.ts'],
          exclude: ['**/node_modules/**', ...ALONE_FILES, ...LEFT_OUT],
        },
      },
    ],
  },
});
