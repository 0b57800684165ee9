import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { ROOT, run } from './packed.ts';

const folder = mkdtempSync(join(tmpdir(), 'throughline-compiled-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** What a program prints and ends with that is run as the package runs its own. */
async function ran(source: string) {
  const main = join(folder, 'main.cjs');
  writeFileSync(main, source);
  const start = `require(${JSON.stringify(join(ROOT, 'bin/compiled.js'))}).start(${JSON.stringify(main)});`;
  const { code, stdout, stderr } = await run(process.execPath, ['-e', start]);
  return { code, stdout, stderr };
}

// Agents are ended and the terminal is given back by such listeners.
test.each([
  ['has nothing left to do', ''],
  ['ends itself', 'process.exit();'],
])('what listens for the end of a command is called, when the command %s', async (_, how) => {
  const later = `setTimeout(() => {
    process.on('exit', () => console.log('heard'));
    process.exitCode = 3;
    process.stdout.write('x'.repeat(100_000));
    ${how}
  }, 1);`;
  expect(await ran(later)).toEqual({ code: 3, stdout: `${'x'.repeat(100_000)}heard\n`, stderr: '' });
});

test('what is thrown ends a command as it ends Node', async () => {
  const ended = await ran(
    `setTimeout(() => { process.on('exit', () => console.log('heard')); throw new Error('no'); });`,
  );
  expect(ended).toMatchObject({ code: 1, stdout: 'heard\n', stderr: expect.stringContaining('Error: no') });
});
