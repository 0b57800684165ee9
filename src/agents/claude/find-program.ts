import { execFile } from 'node:child_process';
import { homedir } from 'node:os';

/** Claude obeys what lies in the folder that it is started in. Here nobody but the system's owner can put anything. */
export const NEUTRAL_FOLDER = '/';
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
    cwd: NEUTRAL_FOLDER,
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
