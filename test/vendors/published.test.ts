import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const folder = import.meta.dirname;
const TSC = join(folder, '../../node_modules/typescript/bin/tsc');

test('our use of the vendors’ packages agrees with the types that they publish', async (context) => {
  if (!existsSync(join(folder, 'node_modules/e2b'))) {
    context.skip('the packages of vendors are not installed: run "node scripts/setup.js test/vendors"');
  }
  const output = await new Promise<string>((resolve) => {
    execFile(process.execPath, [TSC, '--noEmit', '-p', folder], (_, stdout, stderr) => resolve(stdout + stderr));
  });
  expect(output).toBe('');
});
