import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { type ErrorCode, ThroughlineError } from '../../../core/errors.ts';
import { packageIn, SDK } from './package.ts';

/** The version that our tests use. Others may work as well; they were not tried. */
export const TESTED_VERSION = '0.3.325';

export interface InstallRequest {
  /** The target folder; its content is replaced. */
  readonly folder: string;
  /** Null: `TESTED_VERSION`. */
  readonly version: string | null;
  /** The environment of npm: the user's own, with its proxies and registries. */
  readonly env: NodeJS.ProcessEnv;
  readonly signal?: AbortSignal;
}

interface Installed {
  readonly folder: string;
  readonly version: string;
  /** False: it was there already. */
  readonly changed: boolean;
}

/**
 * Installs Claude's Agent SDK and its program into a folder of ours with npm. Scripts of packages are not run. npm works in a
 * temporary folder that then replaces the target, so that an interrupted installation changes nothing. Idempotent.
 *
 * Throws `invalid`, `not_found` (no such version), `agent_unavailable` (no npm, no network), `storage_full`.
 */
export async function installClaude({ folder, version, env, signal }: InstallRequest): Promise<Installed> {
  const wanted = version ?? TESTED_VERSION;
  // Anything else could be a file, a URL or a range.
  if (!/^\d+\.\d+\.\d+(?:-[\w.]+)?$/.test(wanted)) {
    throw new ThroughlineError('invalid', `${JSON.stringify(wanted)} is not an exact version.`, {
      hint: `Use one such as ${TESTED_VERSION}.`,
    });
  }
  if (isInstalled(folder, wanted)) return { folder, version: wanted, changed: false };
  const parent = dirname(folder);
  mkdirSync(parent, { recursive: true, mode: 0o700 });
  const building = mkdtempSync(join(parent, `.${basename(folder)}-`));
  try {
    const manifest = { private: true, dependencies: { [SDK]: wanted } };
    writeFileSync(join(building, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`);
    await npmInstall(building, wanted, env, signal);
    if (!isInstalled(building, wanted)) {
      throw new ThroughlineError(
        'agent_unavailable',
        `npm installed ${SDK} ${wanted} without a program for this machine.`,
        {
          hint: `Check that npm's "omit" setting does not leave out optional packages (${process.platform}-${process.arch}).`,
        },
      );
    }
    replaceFolder(folder, building);
    return { folder, version: wanted, changed: true };
  } finally {
    rmSync(building, { recursive: true, force: true });
  }
}

function isInstalled(folder: string, version: string): boolean {
  const found = packageIn(folder);
  return found !== null && found.version === version && found.program !== null;
}

/** A Claude that still runs from the old folder keeps its files until it exits. */
function replaceFolder(folder: string, building: string): void {
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

function npmInstall(cwd: string, version: string, env: NodeJS.ProcessEnv, signal?: AbortSignal): Promise<void> {
  const npm = process.platform === 'win32' ? 'npm.cmd' : 'npm';
  return new Promise((resolve, reject) => {
    const options = { cwd, env, signal, maxBuffer: Number.POSITIVE_INFINITY };
    const child = execFile(npm, ARGUMENTS, options, (error, _, stderr) => {
      if (error === null) resolve();
      // A text as code: npm was not found or was cancelled.
      else reject(npmFailure(typeof error.code === 'string' ? error : stderr, version));
    });
    child.stdin?.end();
  });
}

const AGAIN = 'Then run "throughline agents install claude" again.';

/** What npm prints when it fails, and what to do about it. */
const NPM_ERRORS: readonly (readonly [words: RegExp, code: ErrorCode, message: string, hint: string])[] = [
  [
    /\b(?:ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|EHOSTUNREACH|ERR_SOCKET_TIMEOUT)\b|network/i,
    'agent_unavailable',
    'npm could not reach its registry.',
    `Check the network, the proxy and "npm config get registry". ${AGAIN}`,
  ],
  [
    /\b(?:ETARGET|E404)\b/,
    'not_found',
    `npm has no such version of ${SDK}.`,
    `See "npm view ${SDK} versions", or leave out --version.`,
  ],
  [
    /\b(?:E401|E403|ENEEDAUTH)\b/,
    'agent_unavailable',
    "npm's registry refused access.",
    'Check its login: "npm whoami".',
  ],
  [/\b(?:ENOSPC|EDQUOT)\b/, 'storage_full', 'The disk is full.', `Claude needs about 500 MB. ${AGAIN}`],
  [/\b(?:EACCES|EPERM|EROFS)\b/, 'storage_readonly', 'npm cannot write to the data home.', 'Check its permissions.'],
];

function npmFailure(cause: Error | string, version: string): ThroughlineError {
  if (cause instanceof Error) {
    if (cause.name === 'AbortError')
      return new ThroughlineError('cancelled', 'The installation was cancelled.', { cause });
    const hint = 'Install Node together with npm, or put the program "claude" on PATH.';
    return new ThroughlineError('agent_unavailable', 'npm was not found.', { hint, cause });
  }
  const known = NPM_ERRORS.find(([words]) => words.test(cause));
  if (known === undefined) {
    const message = `npm could not install ${SDK} ${version}: ${firstErrors(cause) || 'it did not say why'}`;
    return new ThroughlineError('agent_unavailable', message);
  }
  const [, code, message, hint] = known;
  const detail = firstErrors(cause);
  return new ThroughlineError(code, detail === '' ? message : `${message} (${detail})`, { hint });
}

function firstErrors(stderr: string): string {
  const lines = stderr.split('\n').map((line) => line.replace(/^npm (?:error|ERR!)\s*/i, '').trim());
  return lines
    .filter((line) => line !== '' && !/^(?:npm warn|A complete log|code )/i.test(line))
    .slice(0, 2)
    .join(' ');
}
