import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { createDirectories } from '../../core/directories.ts';
import { type ErrorCode, ThroughlineError, writeFault } from '../../core/errors.ts';

/** An agent that `throughline agents install` can install. */
export interface Installable {
  /** The name that people use. */
  readonly agent: string;
  readonly package: string;
  /** The version that our tests use. Others may work as well; they were not tried. */
  readonly tested: string;
  /** For messages: about how much space it needs. */
  readonly megabytes: number;
  /** Whether this version is in the folder's node_modules, with a program for this machine. */
  isInstalled(folder: string, version: string): boolean;
}

/** Compares two versions such as `2.1.248`. */
export function isOlder(version: string, than: string): boolean {
  return version.localeCompare(than, 'en', { numeric: true }) < 0;
}

export interface InstallRequest {
  readonly what: Installable;
  /** The target folder; its content is replaced. */
  readonly folder: string;
  /** Null: the tested one. */
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
 * Installs an agent's package and its program into a folder of ours with npm. Scripts of packages are not run. npm works in a
 * temporary folder that then replaces the target, so that an interrupted installation changes nothing. Idempotent.
 *
 * Throws `invalid`, `not_found` (no such version), `agent_unavailable` (no npm, no network), `storage_full`, `storage_readonly`.
 */
export async function installAgent({ what, folder, version, env, signal }: InstallRequest): Promise<Installed> {
  const wanted = version ?? what.tested;
  // npm also takes files, URLs and ranges.
  if (!/^\d+\.\d+\.\d+(?:-[\w.]+)?$/.test(wanted)) {
    throw new ThroughlineError('invalid', `${JSON.stringify(wanted)} is not an exact version.`, {
      hint: `Use one such as ${what.tested}.`,
    });
  }
  if (what.isInstalled(folder, wanted)) return { folder, version: wanted, changed: false };
  const building = temporaryBeside(folder);
  try {
    const manifest = { private: true, dependencies: { [what.package]: wanted } };
    writeFileSync(join(building, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`);
    await npmInstall({ what, folder: building, version: wanted, env, ...(signal && { signal }) });
    if (!what.isInstalled(building, wanted)) {
      throw new ThroughlineError(
        'agent_unavailable',
        `npm installed ${what.package} ${wanted} without a program for this machine.`,
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

function temporaryBeside(folder: string): string {
  const parent = dirname(folder);
  try {
    createDirectories(parent, { statSync, mkdirSync });
    return mkdtempSync(join(parent, `.${basename(folder)}-`));
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException;
    const hint = 'Use another data home: --home, or THROUGHLINE_HOME.';
    throw (
      writeFault(parent, cause) ??
      new ThroughlineError('storage_readonly', `Cannot write to ${parent} (${code ?? message}).`, { hint, cause })
    );
  }
}

/** An agent that still runs from the old folder keeps its files until it exits. */
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

const NPM_ARGS = ['install', '--ignore-scripts', '--no-audit', '--no-fund', '--no-package-lock', '--loglevel=error'];

function npmInstall({ what, folder: cwd, version, env, signal }: InstallRequest): Promise<void> {
  const npm = process.platform === 'win32' ? 'npm.cmd' : 'npm';
  return new Promise((resolve, reject) => {
    // npm runs compiled code from a folder of a fixed name in the temporary folder, which any user can create first.
    const own = { ...env, NODE_DISABLE_COMPILE_CACHE: '1' };
    const options = { cwd, env: own, signal, maxBuffer: Number.POSITIVE_INFINITY };
    const child = execFile(npm, NPM_ARGS, options, (error, _, stderr) => {
      if (error === null) resolve();
      // A code that is a text: npm was not found, or was cancelled.
      else reject(npmFailure(typeof error.code === 'string' ? error : stderr, `${version}`, what));
    });
    child.stdin?.end();
  });
}

/** What npm prints when it fails, and what to do about it. */
function npmErrors({ agent, package: name, megabytes }: Installable, version: string) {
  const again = `Then run "throughline agents install ${agent}" again.`;
  const all: (readonly [pattern: RegExp, code: ErrorCode, message: string, hint: string])[] = [
    [
      /\b(?:ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|EHOSTUNREACH|ERR_SOCKET_TIMEOUT)\b|network/i,
      'agent_unavailable',
      'npm could not reach its registry.',
      `Check the network, the proxy and "npm config get registry". ${again}`,
    ],
    [
      /\b(?:ETARGET|E404)\b/,
      'not_found',
      `npm has no version ${version} of ${name}.`,
      `See "npm view ${name} versions", or leave out --version.`,
    ],
    [
      /\b(?:E401|E403|ENEEDAUTH)\b/,
      'agent_unavailable',
      "npm's registry refused access.",
      'Check its login: "npm whoami".',
    ],
    [/\b(?:ENOSPC|EDQUOT)\b/, 'storage_full', 'The disk is full.', `It needs about ${megabytes} MB. ${again}`],
    [/\b(?:EACCES|EPERM|EROFS)\b/, 'storage_readonly', 'npm cannot write to the data home.', 'Check its permissions.'],
  ];
  return all;
}

function npmFailure(cause: Error | string, version: string, what: Installable): ThroughlineError {
  if (cause instanceof Error) {
    if (cause.name === 'AbortError')
      return new ThroughlineError('cancelled', 'The installation was cancelled.', { cause });
    const hint = `Install Node together with npm, or put the program of ${what.agent} on PATH.`;
    return new ThroughlineError('agent_unavailable', 'npm was not found.', { hint, cause });
  }
  const known = npmErrors(what, version).find(([pattern]) => pattern.test(cause));
  if (known === undefined) {
    const message = `npm could not install ${what.package} ${version}: ${firstErrors(cause) || 'npm gave no reason'}`;
    return new ThroughlineError('agent_unavailable', message);
  }
  const [, code, message, hint] = known;
  // That there is no such version says everything; for the rest npm may name a host or a file.
  const detail = code === 'not_found' ? '' : firstErrors(cause);
  return new ThroughlineError(code, detail === '' ? message : `${message} (${detail})`, { hint });
}

function firstErrors(stderr: string): string {
  const lines = stderr.split('\n').map((line) => line.replace(/^npm (?:error|ERR!)\s*/i, '').trim());
  return lines
    .filter((line) => line !== '' && !/^(?:npm warn|A complete log|code )/i.test(line))
    .slice(0, 2)
    .join(' ');
}
