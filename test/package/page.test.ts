// How the page is built (scripts/page.js), in a copy of what goes into it.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { initialBytes } from '../../bench/support/page-files.ts';
import { until } from '../e2e/support/conversations.ts';
import { ROOT } from './packed.ts';

let checkout: string;
beforeAll(() => {
  checkout = mkdtempSync(join(tmpdir(), 'throughline-page-build-'));
  for (const path of ['web', 'src', 'scripts', 'package.json', 'package-lock.json', 'tsconfig.json']) {
    cpSync(join(ROOT, path), join(checkout, path), { recursive: true });
  }
  symlinkSync(join(ROOT, 'node_modules'), join(checkout, 'node_modules'));
});
afterAll(() => rmSync(checkout, { recursive: true, force: true, maxRetries: 5 }));

const page = (path = '') => join(checkout, 'dist/page', path);

function begin(): ChildProcess {
  // NODE_ENV as a test runner has it: what is built must not depend on it.
  return spawn(process.execPath, ['scripts/page.js'], {
    cwd: checkout,
    env: { PATH: process.env.PATH, NODE_ENV: 'test' },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
}

async function build(): Promise<{ code: number | null; said: string }> {
  const child = begin();
  const [said, [code]] = await Promise.all([text(child.stderr as NodeJS.ReadableStream), once(child, 'exit')]);
  return { code, said };
}

const script = () => readdirSync(page('assets')).find((name) => /^index-.*\.js$/.test(name)) ?? '';

test('several processes at once build the page once; without a change nothing is built', async () => {
  const all = await Promise.all([build(), build(), build()]);
  expect(all.map(({ code }) => code)).toEqual([0, 0, 0]);
  expect(all.filter(({ said }) => said.includes('building it (there is none yet)'))).toHaveLength(1);
  expect(await build()).toEqual({ code: 0, said: '' });
});

test('it is built for production, compressed, with the licences of what is in it', () => {
  const code = readFileSync(page(`assets/${script()}`), 'utf8');
  expect(code.includes('Download the React DevTools')).toBe(false);
  for (const end of ['.br', '.gz']) expect(existsSync(page(`assets/${script()}${end}`))).toBe(true);
  const licences = readFileSync(page('LICENSES.md'), 'utf8');
  for (const name of ['react-dom', '@base-ui/react', 'eventsource-parser', 'tailwindcss']) {
    expect(licences).toContain(`## ${name}`);
  }
  // Nothing in the document but references to files.
  expect(readFileSync(page('index.html'), 'utf8')).not.toMatch(/<style|<script(?![^>]* src=)| style=| on\w+=/);
});

test('a browser loads at most 200 KB of scripts before the page shows', () => {
  const { scripts, styles } = initialBytes(page());
  expect(scripts).toBeGreaterThan(50_000); // or it is not the page
  expect(scripts).toBeLessThanOrEqual(200_000);
  expect(styles).toBeLessThanOrEqual(30_000);
});

test('a changed source is built anew, also one of the client; a build that is killed or fails leaves the page as it was', async () => {
  const before = script();
  const styles = join(checkout, 'web/src/styles.css');
  const original = readFileSync(styles, 'utf8');
  writeFileSync(styles, `${original}\n.killed { color: red; }\n`);
  const killed = begin();
  await until('the build has begun', () =>
    readdirSync(join(checkout, 'dist')).some((name) => name.startsWith('.page-')),
  );
  killed.kill('SIGKILL');
  await once(killed, 'exit');
  expect([script(), existsSync(page('index.html'))]).toEqual([before, true]);

  writeFileSync(styles, `${original}\n.open {`);
  const failed = await build();
  expect([failed.code, failed.said]).toEqual([1, expect.stringContaining('page: it could not be built.')]);
  expect([script(), existsSync(page('index.html'))]).toEqual([before, true]);

  writeFileSync(styles, original);
  const client = join(checkout, 'src/client.ts');
  writeFileSync(client, `${readFileSync(client, 'utf8')}\nexport const changed = true;\n`);
  expect(await build()).toMatchObject({ code: 0, said: expect.stringContaining('its sources have changed') });
  expect(readdirSync(join(checkout, 'dist'))).toEqual(['page']);
});
