import { execFile } from 'node:child_process';
import { homedir } from 'node:os';
import { isObject } from '../../../core/turn/content.ts';
import type { Login } from '../../../ports/agent.ts';
import { onPath } from '../../shared/paths.ts';
import { NEUTRAL_FOLDER } from './find.ts';

export interface LoginRequest {
  readonly command: readonly string[];
  /** What Claude is started with beyond PATH and HOME. */
  readonly env: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
}

/** Asks Claude itself, which asks no model. Whether a key is still valid only its API knows. */
export async function loginOf(request: LoginRequest): Promise<Login> {
  const loggedIn = loggedInOf(await authStatus(request));
  if (loggedIn === null) return { loggedIn, hint: 'this version of Claude does not say' };
  return { loggedIn, hint: loggedIn ? null : `run "${loginCommand(request)}", or set ANTHROPIC_API_KEY` };
}

/** With the whole path where "claude" alone would not find the program: one that we have installed is not on PATH. */
function loginCommand({ command: [program = 'claude', ...args] }: LoginRequest): string {
  const name = onPath('claude', process.env.PATH ?? '') === program ? 'claude' : program;
  return [name, ...args, 'auth', 'login'].join(' ');
}

/** All that it prints, whatever the exit code: without a login it prints its answer and fails. */
function authStatus({ command: [program = '', ...args], env, signal }: LoginRequest): Promise<string> {
  const options = {
    cwd: NEUTRAL_FOLDER,
    env: { PATH: process.env.PATH, HOME: homedir(), NO_COLOR: '1', ...env },
    signal,
    killSignal: 'SIGKILL',
  } as const;
  return new Promise((done) => {
    execFile(program, [...args, 'auth', 'status', '--json'], options, (_, output) => done(output)).stdin?.end();
  });
}

/** Null: the output does not say. */
function loggedInOf(output: string): boolean | null {
  try {
    const status: unknown = JSON.parse(output);
    return isObject(status) && typeof status.loggedIn === 'boolean' ? status.loggedIn : null;
  } catch {
    return null;
  }
}
