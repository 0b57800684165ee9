import { isObject } from '../../../core/turn/content.ts';
import type { Login } from '../../../ports/agent.ts';
import { onPath } from '../../shared/paths.ts';
import { askProgram, type FindSettings } from './find.ts';

export interface LoginRequest {
  readonly command: readonly string[];
  /** What Claude is started with beyond PATH and HOME. */
  readonly env: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
  readonly newMark?: FindSettings['newMark'];
}

/** Asks Claude itself, which asks no model. Whether a key is still valid only its API knows. */
export async function loginOf(request: LoginRequest): Promise<Login> {
  const { command, env, signal, newMark } = request;
  const options = { env: { PATH: process.env.PATH, ...env }, signal, newMark };
  // Without a login it prints its answer and fails.
  const { output } = await askProgram(command, ['auth', 'status', '--json'], options);
  const loggedIn = loggedInOf(output);
  if (loggedIn === null) return { loggedIn, hint: 'this version of Claude does not say' };
  return { loggedIn, hint: loggedIn ? null : `run "${loginCommand(request)}", or set ANTHROPIC_API_KEY` };
}

/** With the whole path where "claude" alone would not find the program: one that we have installed is not on PATH. */
function loginCommand({ command: [program = 'claude', ...args] }: LoginRequest): string {
  const name = onPath('claude', process.env.PATH ?? '') === program ? 'claude' : program;
  return [name, ...args, 'auth', 'login'].join(' ');
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
