import { ThroughlineError } from '../../../core/errors.ts';
import { type ClaudeConnection, ClaudeRefusal, type Connect, type ConnectRequest } from '../connection.ts';
import { type Abilities, abilitiesOf } from './abilities.ts';
import { argumentsFor, checkRequest } from './arguments.ts';
import { OneAPromptConnection } from './one-a-prompt.ts';
import { refusalOf } from './refusal.ts';
import { WarmConnection } from './warm.ts';

/** The program to start for a working directory, and what that version of it can do. */
export interface Program {
  readonly command: readonly string[];
  readonly can: Abilities;
}

/** `find` throws `agent_unavailable` when there is none. */
export function cliConnect(find: (work: string) => Promise<Program>): Connect {
  return async (request) => {
    const { command, can } = await find(request.room.work);
    checkRequest(request, can);
    throwIfAborted(request.signal);
    return can.warm ? connectWarm(request, command, can) : connectOneAPrompt(request, command, can);
  };
}

async function connectWarm(request: ConnectRequest, command: readonly string[], can: Abilities) {
  const child = await request.room.spawn([...command, ...argumentsFor(request, can)], { env: environment(request) });
  const connection = new WarmConnection(child, (question) => request.onPermission(question));
  const stop = () => child.kill('SIGKILL');
  request.signal.addEventListener('abort', stop, { once: true });
  if (request.signal.aborted) stop();
  try {
    const started = await connection.start();
    throwIfAborted(request.signal);
    if ('ended' in started) throw refusalOf(started.ended) ?? notStarted(command, started.ended);
    // A version that does not know how to be asked takes prompts all the same.
    return connection;
  } catch (error) {
    await connection.kill();
    throw error;
  } finally {
    request.signal.removeEventListener('abort', stop);
  }
}

async function connectOneAPrompt(
  request: ConnectRequest,
  command: readonly string[],
  can: Abilities,
): Promise<ClaudeConnection> {
  const start = (id: string | null) => {
    const how = id === null ? request.how : ({ kind: 'resume', id } as const);
    return request.room.spawn([...command, ...argumentsFor({ ...request, how }, can)], { env: environment(request) });
  };
  const connection = new OneAPromptConnection(await start(null), null, start);
  if (request.signal.aborted) await connection.kill();
  throwIfAborted(request.signal);
  return connection;
}

/** The state events tell when a turn is really over; an update in the middle of one would change the version under us. */
function environment({ env }: ConnectRequest): Record<string, string> {
  return { DISABLE_AUTOUPDATER: '1', ...env, CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS: '1' };
}

function throwIfAborted(signal: AbortSignal): void {
  if (signal.aborted) throw new ClaudeRefusal('refused', 'opening was cancelled');
}

function notStarted([program = 'claude']: readonly string[], how: string): ThroughlineError {
  return new ThroughlineError('agent_unavailable', `${program} ended ${how}, before its session was open.`, {
    hint: 'Run "throughline agents" to see which Claude is used, or the program by hand to see what it says.',
  });
}

/** Throws `agent_unavailable` for a version that cannot hold a conversation. */
export async function programOf(command: readonly string[], version: string, path: string): Promise<Program> {
  const can = await abilitiesOf(command, version, path);
  if (can !== null) return { command, can };
  throw new ThroughlineError('agent_unavailable', `Claude ${version} (${command[0]}) is too old: it cannot resume.`, {
    hint: 'Update it, or run "throughline agents install claude".',
  });
}
