// Runs with every test file that shares a process with others (vitest.config.ts). Such a file must put back what it changes: a later
// file would fail for a reason that is not its own.
import fc from 'fast-check';
import { afterAll, expect } from 'vitest';
import { seedOfRun } from './faults/harness/random.ts';

// Generated values, too, are the same in every run of a commit.
fc.configureGlobal({ seed: seedOfRun() });

/** The Claude Agent SDK sets them where it is loaded, once for a process. No test looks at them. */
const SET_BY_SDK = ['CLAUDE_AGENT_SDK_VERSION', 'NoDefaultCurrentDirectoryInExePath'];

const state = () => ({
  directory: process.cwd(),
  environment: Object.fromEntries(Object.entries(process.env).filter(([name]) => !SET_BY_SDK.includes(name))),
  functions: [performance.now, Date.now, setTimeout, setInterval, process.stdout.write, process.stderr.write],
});

const before = state();
// Registered first, so it runs after everything that the file itself does at its end.
afterAll(() => expect(state(), 'what this file changed and did not put back').toEqual(before));
