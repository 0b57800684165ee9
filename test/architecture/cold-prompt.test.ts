import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

const root = join(import.meta.dirname, '../..');

/** The last column of a row of the table in CONTRIBUTING.md. NaN: there is no such row. */
function documented(measure: string): number {
  const row = readFileSync(join(root, 'CONTRIBUTING.md'), 'utf8')
    .split('\n')
    .find((line) => line.startsWith(`| ${measure} |`));
  return Number(row?.split('|').at(-2)?.trim());
}

test('a cold prompt passes as few calls and engine files as CONTRIBUTING.md says', async () => {
  const script = join(root, 'scripts/trace-prompt.js');
  const { stdout } = await promisify(execFile)(process.execPath, [script]);
  const [calls, files] = [/path to `open` +(\d+)/, /entered before `open` +(\d+)/].map((row) =>
    Number(row.exec(stdout)?.[1]),
  );
  expect({ calls, files }).toEqual({
    calls: documented('cold prompt: calls on the path to `agent.open`'),
    files: documented('cold prompt: engine files entered before `agent.open`'),
  });
  expect(calls).toBeLessThanOrEqual(15);
  expect(files).toBeLessThanOrEqual(12);
}, 120_000);
