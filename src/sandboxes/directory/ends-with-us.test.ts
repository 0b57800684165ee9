import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { isAlive } from '../../../test/contracts/liveness.ts';

test.each(['process.exit(0)', 'process.exitCode = 0; throw new Error("a bug")'])(
  'a process that ends its own way (%s) leaves no program behind, not even one that ignores its input',
  async (ending) => {
    const root = mkdtempSync(join(tmpdir(), 'throughline-sandbox-'));
    const modules = ['directory-sandboxes.ts', '../../host/processes.ts'];
    const [sandboxes, processes] = modules.map((path) => JSON.stringify(new URL(path, import.meta.url).href));
    const script = `
      const { directorySandboxes } = await import(${sandboxes});
      const { systemProcesses: processes } = await import(${processes});
      const sandbox = await directorySandboxes({ root: process.argv[1], place: 'x', processes }).open('one', { cwd: null });
      const child = await sandbox.spawn([process.execPath, '-e', 'setInterval(() => {}, 1000)'], { env: {} });
      console.log(JSON.parse(child.identity.id).pid);
      ${ending}`;
    let output: string;
    try {
      output = execFileSync(process.execPath, ['--input-type=module', '-e', script, root], {
        encoding: 'utf8',
        stdio: ['ignore', 'pipe', 'ignore'],
      });
    } catch (error) {
      output = (error as { stdout: string }).stdout;
    }
    const pid = Number(output);
    expect(pid).toBeGreaterThan(0);
    await expect.poll(() => isAlive(pid)).toBe(false);
    rmSync(root, { recursive: true, force: true });
  },
);
