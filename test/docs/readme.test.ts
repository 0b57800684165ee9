import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parseSettings } from '../../src/core/input/settings.ts';
import { CliHome, Running } from '../e2e/cli/process.ts';
import { PROGRAM } from '../program.ts';
import { blocksIn, read } from './blocks.ts';

// The commands of README.md, run as they are written. `npx` runs the program of the tests.

const home = new CliHome();
const bin = join(home.path, 'bin');
beforeAll(() => {
  mkdirSync(bin);
  const npx = join(bin, 'npx');
  writeFileSync(npx, `#!/bin/sh\nshift\nexec '${process.execPath}' '${PROGRAM}' "$@"\n`);
  chmodSync(npx, 0o755);
});
afterAll(() => home.remove());

const SHELL = blocksIn('README.md', read('README.md'), ['sh']).map(({ code }) => code);
const blockWith = (word: string) => SHELL.find((code) => code.includes(word)) ?? '';

test('no block has a command after one that runs until Ctrl-C', () => {
  expect(SHELL.length).toBeGreaterThan(4);
  const commands = SHELL.map((code) => code.trimEnd().split('\n'));
  const isEndless = (line: string) => /^(npm start|npx throughline serve)\b/.test(line);
  expect(commands.filter((lines) => lines.slice(0, -1).some(isEndless))).toEqual([]);
  expect(commands.filter((lines) => isEndless(lines.at(-1) ?? ''))).toHaveLength(2);
});

test('the package is installed before the first snippet that needs it in a project', () => {
  const text = read('README.md');
  expect(text.indexOf('npm install ../throughline')).toBeLessThan(text.indexOf("from 'throughline'"));
});

test('the settings that the text shows are accepted as they stand', () => {
  const shown = [...read('README.md').matchAll(/`({ "\w+": [{"][^`]*)`/g)].map(([, settings = '']) => settings);
  expect(shown).toContainEqual(expect.stringContaining('bubblewrap'));
  for (const settings of shown) expect(parseSettings(JSON.parse(settings))).toBeTruthy();
});

test('the request with curl reaches the server of the data home, whatever its port is', async () => {
  const server = home.start(['serve', '--port', '0']);
  await server.until('stdout', /serves at/);
  const env = { ...home.environment(), PATH: `${bin}:${process.env.PATH}` };
  const script = join(home.path, 'curl.sh');
  writeFileSync(script, `set -e\n${blockWith('curl')}`);
  const { code, stdout, stderr } = await new Running(script, [], { node: '/bin/sh', env, cwd: home.path }).ended;
  expect(code, stderr).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject({ turn: { n: 1 } });
  expect(await home.show('ticket-4711')).toMatchObject({ turns: [{ prompt: [{ type: 'text', text: 'Hello' }] }] });
});
