import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Command } from 'commander';
import { expect, test } from 'vitest';
import type { Cli } from '../../../cli.ts';
import { sendDetached } from './detach.ts';

test('an error of the background process is reported, also when it arrives after the end of its output', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'throughline-detach-'));
  const program = join(folder, 'program.js');
  const fault = JSON.stringify({ error: { code: 'not_found', message: 'There is no such directory.' } });
  // Its output ends when it is closed. Its error follows when the reader has certainly seen that.
  writeFileSync(
    program,
    `require('node:fs').closeSync(1); setTimeout(() => console.error(${JSON.stringify(fault)}), 300);`,
  );
  const [, before = ''] = process.argv;
  process.argv[1] = program;
  try {
    const cli = { output: { waitFor() {} } } as unknown as Cli;
    await expect(sendDetached(new Command('send'), 'notes', 'Hello.', cli)).rejects.toMatchObject({
      code: 'not_found',
      message: 'There is no such directory.',
    });
  } finally {
    process.argv[1] = before;
    rmSync(folder, { recursive: true });
  }
});
