import { execFile } from 'node:child_process';
import { homedir } from 'node:os';
import { isObject } from '../../core/content.ts';
import type { Login } from '../../ports/agent.ts';
import { onPath } from '../shared/programs.ts';
import { NEUTRAL_FOLDER } from './find-program.ts';

export interface LoginRequest {
  readonly command: readonly string[];
  /** What Claude is started with beyond PATH and HOME. */
  readonly env: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
}

const LOGGED_IN: Login = { loggedIn: true, hint: null };
const UNKNOWN: Login = { loggedIn: null, hint: 'this version of Claude does not say' };
const KEYS = ['ANTHROPIC_API_KEY', 'ANTHROPIC_AUTH_TOKEN', 'CLAUDE_CODE_OAUTH_TOKEN'];

/** What Claude says of it itself, which asks no model. Whether a key is still good only its API knows. */
export async function loginOf(request: LoginRequest): Promise<Login> {
  // Older versions would take the words for a prompt.
  if (!/^ {2}auth(?: |$)/m.test(await printed(['--help'], request))) {
    return KEYS.some((key) => request.env[key]) ? LOGGED_IN : UNKNOWN;
  }
  const { loggedIn } = parse(await printed(['auth', 'status', '--json'], request));
  return typeof loggedIn !== 'boolean' ? UNKNOWN : loggedIn ? LOGGED_IN : loggedOut(request);
}

/** One that we have installed is not on the person's PATH: what is to be run is said so that it can be. */
function loggedOut({ command }: LoginRequest): Login {
  const [program = 'claude', ...args] = command;
  const name = onPath('claude', process.env.PATH ?? '') === program ? 'claude' : program;
  return { loggedIn: false, hint: `run "${[name, ...args].join(' ')} auth login", or set ANTHROPIC_API_KEY` };
}

/** To the end, however it ends: where nobody is logged in it says so and fails. */
function printed(more: readonly string[], { command: [program = '', ...args], env, signal }: LoginRequest) {
  const options = {
    cwd: NEUTRAL_FOLDER,
    env: { PATH: process.env.PATH, HOME: homedir(), NO_COLOR: '1', ...env },
    signal,
    killSignal: 'SIGKILL',
  } as const;
  return new Promise<string>((done) => {
    execFile(program, [...args, ...more], options, (_, output) => done(output)).stdin?.end();
  });
}

function parse(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : {};
  } catch {
    return {};
  }
}
