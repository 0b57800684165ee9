import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Browser } from 'playwright-core';

/*
 * A real Chromium for tests, found in this order:
 *
 *   1. $THROUGHLINE_CHROMIUM, the path of the program
 *   2. the one of the system: `chromium` of Debian, or a Chrome
 *   3. the npm package @sparticuz/chromium of this folder (`npm test` installs it; Linux on x64)
 */

const SYSTEM_PATHS = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];
const FOLDER = fileURLToPath(new URL('.', import.meta.url));
const PACKAGE_FOLDER = join(FOLDER, 'node_modules', '@sparticuz', 'chromium');
const UNPACKED_FOLDER = join(FOLDER, 'node_modules', '.unpacked');

interface Program {
  readonly path: string;
  readonly env: Readonly<Record<string, string>>;
}

/** A string: the reason why there is none. */
function findChromium(): Program | string {
  const { THROUGHLINE_CHROMIUM: named } = process.env;
  if (named)
    return existsSync(named) ? { path: named, env: {} } : `$THROUGHLINE_CHROMIUM is ${named}, which does not exist`;
  const system = SYSTEM_PATHS.find((path) => existsSync(path));
  if (system !== undefined) return { path: system, env: {} };
  if (process.platform !== 'linux' || process.arch !== 'x64')
    return 'needs Chromium: set THROUGHLINE_CHROMIUM to its path';
  if (!existsSync(PACKAGE_FOLDER))
    return 'needs Chromium: run "node scripts/setup.js test/browser", or install chromium';
  return unpackedChromium();
}

/** Unpacks into a new folder, which is then renamed: several processes may do this at the same time. */
function unpackedChromium(): Program | string {
  const program = {
    path: join(UNPACKED_FOLDER, 'chromium'),
    env: { LD_LIBRARY_PATH: join(UNPACKED_FOLDER, 'al2023', 'lib') },
  };
  if (existsSync(program.path)) return program;
  const newFolder = mkdtempSync(`${UNPACKED_FOLDER}-`);
  const env = { PATH: process.env.PATH ?? '', TMPDIR: newFolder, AWS_EXECUTION_ENV: 'AWS_Lambda_nodejs22.x' };
  const run = spawnSync(process.execPath, [join(FOLDER, 'unpack.js')], { env, encoding: 'utf8' });
  if (run.status !== 0) return `Chromium could not be unpacked: ${run.stderr.trim().split('\n').at(-1)}`;
  try {
    renameSync(newFolder, UNPACKED_FOLDER);
  } catch {
    // Another process was faster.
    rmSync(newFolder, { recursive: true, force: true });
  }
  return existsSync(program.path) ? program : 'Chromium could not be unpacked';
}

/** Starts Chromium. A string: the reason why it cannot be started. */
export async function launchChromium(): Promise<Browser | string> {
  const program = findChromium();
  if (typeof program === 'string') return program;
  const { chromium } = await import('playwright-core');
  // Chromium does not start as root with its sandbox, and the tests load only our own pages. Other checks stay on: some tests are about CORS.
  const options = { executablePath: program.path, chromiumSandbox: false, args: ['--disable-gpu'] };
  // Other tests send signals to this process. Playwright would then close the browser, or end the process.
  const signals = { handleSIGINT: false, handleSIGTERM: false, handleSIGHUP: false };
  return chromium.launch({
    ...options,
    ...signals,
    env: { ...(process.env as Record<string, string>), ...program.env },
  });
}
