// The build of the page (scripts/page.js), in a copy of its sources and of the page that the checkout has.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
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
import { ROOT, succeeds } from './packed.ts';

let checkout: string;
beforeAll(async () => {
  await succeeds(process.execPath, [join(ROOT, 'scripts/page.js')]);
  checkout = mkdtempSync(join(tmpdir(), 'throughline-page-build-'));
  for (const path of ['web', 'src', 'scripts', 'package.json', 'package-lock.json', 'tsconfig.json', 'dist/page']) {
    cpSync(join(ROOT, path), join(checkout, path), { recursive: true });
  }
  symlinkSync(join(ROOT, 'node_modules'), join(checkout, 'node_modules'));
});
afterAll(() => rmSync(checkout, { recursive: true, force: true, maxRetries: 5 }));

const page = (path = '') => join(checkout, 'dist/page', path);

function begin(): ChildProcess {
  // NODE_ENV as a test runner sets it. The build must not depend on it.
  return spawn(process.execPath, ['scripts/page.js'], {
    cwd: checkout,
    env: { PATH: process.env.PATH, NODE_ENV: 'test' },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
}

async function build(): Promise<{ code: number | null; printed: string }> {
  const child = begin();
  const [printed, [code]] = await Promise.all([text(child.stderr as NodeJS.ReadableStream), once(child, 'exit')]);
  return { code, printed };
}

const script = () => readdirSync(page('assets')).find((name) => /^index-.*\.js$/.test(name)) ?? '';

test('the page is built for production and compressed, with the licences of its packages', () => {
  const code = readFileSync(page(`assets/${script()}`), 'utf8');
  expect(code.includes('Download the React DevTools')).toBe(false);
  for (const end of ['.br', '.gz']) expect(existsSync(page(`assets/${script()}${end}`))).toBe(true);
  const licences = readFileSync(page('LICENSES.md'), 'utf8');
  for (const name of ['react-dom', '@base-ui/react', 'eventsource-parser', 'tailwindcss']) {
    expect(licences).toContain(`## ${name}`);
  }
  // The document has no inline scripts or styles.
  expect(readFileSync(page('index.html'), 'utf8')).not.toMatch(/<style|<script(?![^>]* src=)| style=| on\w+=/);
});

test('a browser loads at most 200 KB of scripts before the page shows', () => {
  const { scripts, styles } = initialBytes(page());
  expect(scripts).toBeGreaterThan(50_000); // or it is not the page
  expect(scripts).toBeLessThanOrEqual(200_000);
  expect(styles).toBeLessThanOrEqual(30_000);
});

test('a build that is killed or fails leaves the earlier page, or none', async () => {
  const before = script();
  const building = () => readdirSync(join(checkout, 'dist')).some((name) => name.startsWith('.page-'));
  const styles = join(checkout, 'web/src/styles.css');
  const original = readFileSync(styles, 'utf8');
  writeFileSync(styles, `${original}\n.killed { color: red; }\n`);
  const changed = begin();
  await until('the build has begun', building);
  await killed(changed);
  expect([script(), existsSync(page('index.html'))]).toEqual([before, true]);

  writeFileSync(styles, `${original}\n.open {`);
  const failed = await build();
  expect([failed.code, failed.printed]).toEqual([1, expect.stringContaining('page: it could not be built.')]);
  expect([script(), existsSync(page('index.html'))]).toEqual([before, true]);
  writeFileSync(styles, original);

  renameSync(page(), join(checkout, 'kept'));
  const first = begin();
  await once(first.stderr as NodeJS.ReadableStream, 'data').then(([printed]) =>
    expect(`${printed}`).toContain('building it (there is none yet)'),
  );
  await killed(first);
  expect(existsSync(page())).toBe(false);
  renameSync(join(checkout, 'kept'), page());
});

test('after a change of the client one of several processes builds the page; without a change nothing is built', async () => {
  expect(await build()).toEqual({ code: 0, printed: '' });
  const client = join(checkout, 'src/client.ts');
  writeFileSync(client, `${readFileSync(client, 'utf8')}\nexport const changed = true;\n`);
  const all = await Promise.all([build(), build(), build()]);
  expect(all.map(({ code }) => code)).toEqual([0, 0, 0]);
  expect(all.filter(({ printed }) => printed.includes('building it (its sources have changed)'))).toHaveLength(1);
  expect(await build()).toEqual({ code: 0, printed: '' });
  expect(readdirSync(join(checkout, 'dist'))).toEqual(['page']);
});

async function killed(child: ChildProcess): Promise<void> {
  child.kill('SIGKILL');
  await once(child, 'exit');
}
