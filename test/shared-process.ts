// Runs with every test file that shares a process with others (vitest.config.ts). Such a file must put back what it changes: a later
// file would fail for a reason that is not its own.
import { afterAll, expect } from 'vitest';

const state = () => ({
  directory: process.cwd(),
  environment: { ...process.env },
  functions: [performance.now, Date.now, setTimeout, setInterval, process.stdout.write, process.stderr.write],
});

const before = state();
// Registered first, so it runs after everything that the file itself does at its end.
afterAll(() => expect(state(), 'what this file changed and did not put back').toEqual(before));
