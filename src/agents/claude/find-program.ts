import { execFile } from 'node:child_process';
import { accessSync, constants, statSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { delimiter, isAbsolute, join, resolve } from 'node:path';

/** A program named in the settings: a whole path, or a name to be looked for. Null: not there, or not executable. */
export function runnable(name: string, path: string): string | null {
  if (!/[/\\]/.test(name)) return onPath(name, path);
  // A relative path would depend on where we happen to run; settings have been resolved before.
  const file = resolve(name);
  return isProgram(file) ? file : null;
}

/** The first on PATH. Relative entries are passed over: they mean another folder in every working directory. */
export function onPath(name: string, path: string): string | null {
  const file = process.platform === 'win32' ? `${name}.exe` : name;
  const found = path
    .split(delimiter)
    .filter((folder) => isAbsolute(folder))
    .map((folder) => join(folder, file));
  return found.find(isProgram) ?? null;
}

function isProgram(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    return false;
  }
}

const ASK_MS = 10_000;
const MOST_BYTES = 1024 * 1024;

/** What `--version` says; null: nothing that we understand. Takes 11 ms with 2.1.325. */
export async function versionOf(command: readonly string[], path: string): Promise<string | null> {
  const text = await said([...command, '--version'], path);
  return /(\d+\.\d+\.\d+)/.exec(text ?? '')?.[1] ?? null;
}

/** Everything that a program prints to the end, without our environment, our working directory or a shell; null: it failed. */
export function said(command: readonly string[], path: string): Promise<string | null> {
  const [program = '', ...args] = command;
  const options = {
    cwd: tmpdir(),
    env: { PATH: path, HOME: homedir(), DISABLE_AUTOUPDATER: '1', NO_COLOR: '1' },
    timeout: ASK_MS,
    killSignal: 'SIGKILL',
    maxBuffer: MOST_BYTES,
  } as const;
  return new Promise((done) => {
    // Reads nothing: a program that waits for its input would wait for ever.
    execFile(program, args, options, (error, output) => done(error === null ? output : null)).stdin?.end();
  });
}
