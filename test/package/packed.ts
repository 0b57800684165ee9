import { spawn } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The checkout. */
export const ROOT = fileURLToPath(new URL('../../', import.meta.url));

/** The packages that these tests need. They are installed separately, see package.json beside this file. */
export const TEST_PACKAGES = join(ROOT, 'test/package/node_modules');

/** The package as its users have it: packed, and installed into an empty folder. */
export interface Packed {
  readonly scratch: string;
  readonly tarball: string;
  /** The folder of a program that uses it. */
  readonly user: string;
  /** Where it is installed. */
  readonly folder: string;
}

/** Runs `npm pack` and `npm install`, as in README.md. In a copy of the checkout, because packing replaces package.json for a moment. */
export async function pack(): Promise<Packed> {
  const scratch = realpathSync(mkdtempSync(join(tmpdir(), 'throughline-packed-')));
  const checkout = join(scratch, 'checkout');
  const left = ['node_modules', '.git', 'dist', 'test', 'bench'];
  cpSync(ROOT, checkout, { recursive: true, filter: (path) => !left.includes(path.slice(ROOT.length)) });
  symlinkSync(join(ROOT, 'node_modules'), join(checkout, 'node_modules'));
  // Packing builds the page if it is out of date. To save that time, the page of the checkout is copied, which tests in a browser use as
  // well. page.test.ts tests the build itself.
  await succeeds(process.execPath, [join(ROOT, 'scripts/page.js')]);
  cpSync(join(ROOT, 'dist/page'), join(checkout, 'dist/page'), { recursive: true });
  await succeeds('npm', ['pack', '--loglevel=error', '--pack-destination', scratch], { cwd: checkout });
  const tarball = join(scratch, readdirSync(scratch).find((name) => name.endsWith('.tgz')) ?? '');

  const user = join(scratch, 'user');
  mkdirSync(user);
  writeFileSync(join(user, 'package.json'), JSON.stringify({ name: 'user', private: true, type: 'module' }));
  const quiet = ['--no-audit', '--no-fund', '--loglevel=error', '--ignore-scripts', '--prefer-offline'];
  await succeeds('npm', ['install', ...quiet, tarball], { cwd: user });
  return { scratch, tarball, user, folder: join(user, 'node_modules/throughline') };
}

export interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

interface RunOptions {
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string | undefined>>;
}

export async function run(program: string, args: readonly string[], { cwd, env }: RunOptions = {}): Promise<Ended> {
  const child = spawn(program, args, {
    cwd,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const output = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8').on('data', (text: string) => {
      output[name] += text;
    });
  }
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code, signal) => resolve({ code, signal, ...output }));
  });
}

/** Resolves with the standard output. If the program fails, throws an error with all of its output. */
export async function succeeds(program: string, args: readonly string[], options: RunOptions = {}): Promise<string> {
  const { code, stdout, stderr } = await run(program, args, options);
  if (code === 0) return stdout;
  throw new Error(`${basename(program)} ${args.join(' ')} ended with ${code}:\n${stdout}\n${stderr}`);
}
