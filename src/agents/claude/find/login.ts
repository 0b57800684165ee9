import type { Login } from '../../../ports/agent.ts';
import type { OpenSandbox } from '../../../ports/sandbox.ts';
import { parseObject } from '../../shared/json.ts';
import { askProgram } from '../../shared/programs.ts';
import type { ClaudeOptions } from '../settings.ts';

interface LoginRequest {
  readonly sandbox: OpenSandbox;
  readonly command: readonly string[];
  /** The variables that Claude gets in addition to those of every program. */
  readonly env: Readonly<Record<string, string>>;
  readonly home: ClaudeOptions['home'];
  readonly signal: AbortSignal;
}

/** Asks Claude itself, without a model call. Only its API can tell whether a key is still valid. */
export async function loginOf(request: LoginRequest): Promise<Login> {
  const { sandbox, command, env, signal } = request;
  // Without a login it prints its answer and fails.
  const asked = [...command, 'auth', 'status', '--json'];
  const { output } = await askProgram(sandbox, asked, { env: { NO_COLOR: '1', ...env }, signal });
  const { loggedIn } = parseObject(output) ?? {};
  if (typeof loggedIn !== 'boolean') return { loggedIn: null, hint: 'this version of Claude does not report it' };
  if (loggedIn) return { loggedIn, hint: null };
  // In a config directory of its own, Claude does not have the login of the user.
  if (request.home === 'sandbox') return { loggedIn, hint: 'set ANTHROPIC_API_KEY' };
  return { loggedIn, hint: `run "${await loginCommand(request)}", or set ANTHROPIC_API_KEY` };
}

/** With the full path if "claude" is another program or none: one that we have installed is not on PATH. */
async function loginCommand({ sandbox, command: [program = 'claude', ...args] }: LoginRequest): Promise<string> {
  const name = (await sandbox.find('claude')) === program ? 'claude' : program;
  return [name, ...args, 'auth', 'login'].join(' ');
}
