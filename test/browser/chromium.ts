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

const SYSTEM = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];
const FOLDER = fileURLToPath(new URL('.', import.meta.url));
const PACKED = join(FOLDER, 'node_modules', '@sparticuz', 'chromium');
const UNPACKED = join(FOLDER, 'node_modules', '.unpacked');

interface Program {
  readonly path: string;
  readonly env: Readonly<Record<string, string>>;
}

/** The program, or why there is none. */
function findChromium(): Program | string {
  const { THROUGHLINE_CHROMIUM: named } = process.env;
  if (named)
    return existsSync(named) ? { path: named, env: {} } : `$THROUGHLINE_CHROMIUM names ${named}, and there is nothing`;
  const system = SYSTEM.find((path) => existsSync(path));
  if (system !== undefined) return { path: system, env: {} };
  if (process.platform !== 'linux' || process.arch !== 'x64')
    return 'needs Chromium: set THROUGHLINE_CHROMIUM to its path';
  if (!existsSync(PACKED)) return 'needs Chromium: run "node scripts/setup.js test/browser", or install chromium';
  return unpacked();
}

/** Several processes may do this at once: the first one wins, and nobody sees half of it. */
function unpacked(): Program | string {
  const program = { path: join(UNPACKED, 'chromium'), env: { LD_LIBRARY_PATH: join(UNPACKED, 'al2023', 'lib') } };
  if (existsSync(program.path)) return program;
  const own = mkdtempSync(`${UNPACKED}-`);
  const env = { PATH: process.env.PATH ?? '', TMPDIR: own, AWS_EXECUTION_ENV: 'AWS_Lambda_nodejs22.x' };
  const run = spawnSync(process.execPath, [join(FOLDER, 'unpack.js')], { env, encoding: 'utf8' });
  if (run.status !== 0) return `Chromium could not be unpacked: ${run.stderr.trim().split('\n').at(-1)}`;
  try {
    renameSync(own, UNPACKED);
  } catch {
    rmSync(own, { recursive: true, force: true });
  }
  return existsSync(program.path) ? program : 'Chromium could not be unpacked';
}

/** Starts it, or says why there is none. */
export async function launchChromium(): Promise<Browser | string> {
  const program = findChromium();
  if (typeof program === 'string') return program;
  const { chromium } = await import('playwright-core');
  // Root has no sandbox, and what the tests load is ours. Nothing else is loosened: CORS is what some of them are about.
  const how = { executablePath: program.path, chromiumSandbox: false, args: ['--disable-gpu'] };
  // Signals are tested in the same process as well, and it must not end by them.
  const unheard = { handleSIGINT: false, handleSIGTERM: false, handleSIGHUP: false };
  return chromium.launch({ ...how, ...unheard, env: { ...(process.env as Record<string, string>), ...program.env } });
}
