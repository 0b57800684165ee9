import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { ThroughlineError } from '../../core/errors.ts';
import { packageIn, SDK } from './find-package.ts';
import { npmFailure } from './install-failure.ts';

/** What our tests run with. Another version may work as well; nobody here has tried. */
export const TESTED_VERSION = '0.3.325';

export interface InstallRequest {
  /** Where it goes; everything else in there is replaced. */
  readonly folder: string;
  /** Null: the tested one. */
  readonly version: string | null;
  /** The environment of npm: the person's own, with their proxies and registries. */
  readonly env: NodeJS.ProcessEnv;
  readonly signal?: AbortSignal;
}

export interface Installed {
  readonly folder: string;
  readonly version: string;
  /** False: it was there already. */
  readonly changed: boolean;
}

/**
 * Puts Claude's Agent SDK, with its program, into a folder of ours by npm. Scripts of packages are not run. It is put together
 * beside the folder and then takes its place, so that an install that is cut short changes nothing. Idempotent.
 *
 * Throws `invalid`, `not_found` (no such version), `agent_unavailable` (no npm, no network), `storage_full`.
 */
export async function installClaude({ folder, version, env, signal }: InstallRequest): Promise<Installed> {
  const wanted = version ?? TESTED_VERSION;
  // Anything else could name a file, an address or a range.
  if (!/^\d+\.\d+\.\d+(?:-[\w.]+)?$/.test(wanted)) {
    throw new ThroughlineError('invalid', `${JSON.stringify(wanted)} is no exact version.`, {
      hint: `Write one like ${TESTED_VERSION}.`,
    });
  }
  if (isThere(folder, wanted)) return { folder, version: wanted, changed: false };
  const parent = dirname(folder);
  mkdirSync(parent, { recursive: true, mode: 0o700 });
  const building = mkdtempSync(join(parent, `.${basename(folder)}-`));
  try {
    const manifest = { private: true, dependencies: { [SDK]: wanted } };
    writeFileSync(join(building, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`);
    await npmInstall(building, wanted, env, signal);
    if (!isThere(building, wanted)) {
      throw new ThroughlineError(
        'agent_unavailable',
        `npm installed ${SDK} ${wanted} without a program for this machine.`,
        {
          hint: `Check that npm's "omit" setting does not leave out optional packages (${process.platform}-${process.arch}).`,
        },
      );
    }
    takeThePlaceOf(folder, building);
    return { folder, version: wanted, changed: true };
  } finally {
    rmSync(building, { recursive: true, force: true });
  }
}

function isThere(folder: string, version: string): boolean {
  const found = packageIn(folder);
  return found !== null && found.version === version && found.program !== null;
}

/** A Claude that runs from the old folder keeps its files until it ends. */
function takeThePlaceOf(folder: string, building: string): void {
  const old = `${building}.old`;
  try {
    renameSync(folder, old);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
  renameSync(building, folder);
  rmSync(old, { recursive: true, force: true });
}

const ARGUMENTS = ['install', '--ignore-scripts', '--no-audit', '--no-fund', '--no-package-lock', '--loglevel=error'];
const KEPT = 8_192;

function npmInstall(
  cwd: string,
  version: string,
  env: NodeJS.ProcessEnv,
  signal: AbortSignal | undefined,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const npm = spawn(process.platform === 'win32' ? 'npm.cmd' : 'npm', ARGUMENTS, {
      cwd,
      env,
      stdio: ['ignore', 'ignore', 'pipe'],
      ...(signal ? { signal } : {}),
    });
    let complaint = '';
    npm.stderr.on('data', (bytes) => {
      complaint = `${complaint}${bytes}`.slice(-KEPT);
    });
    npm.once('error', (error) => reject(npmFailure(error, version)));
    npm.once('close', (code) => (code === 0 ? resolve() : reject(npmFailure(complaint, version))));
  });
}
