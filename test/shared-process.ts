// Runs with every test file that shares a process with others (vitest.config.ts). Such a file must restore what it changes. Otherwise a
// later file would fail because of it.
import fc from 'fast-check';
import { afterAll, expect } from 'vitest';
import { chosenWay } from './e2e/support/way.ts';
import { seedOfRun } from './faults/harness/random.ts';

// So that generated values are the same in every run of a commit.
fc.configureGlobal({ seed: seedOfRun() });

/** The Claude Agent SDK sets these variables when it is first loaded. No test reads them. */
const SET_BY_SDK = ['CLAUDE_AGENT_SDK_VERSION', 'NoDefaultCurrentDirectoryInExePath'];

const state = () => ({
  directory: process.cwd(),
  way: chosenWay(),
  environment: Object.fromEntries(Object.entries(process.env).filter(([name]) => !SET_BY_SDK.includes(name))),
  functions: [performance.now, Date.now, setTimeout, setInterval, process.stdout.write, process.stderr.write],
});

const before = state();
// Registered first, so it runs after the file's own `afterAll`.
afterAll(() => expect(state(), 'this test file changed something and did not restore it').toEqual(before));
