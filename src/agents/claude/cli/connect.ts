import { ThroughlineError } from '../../../core/errors.ts';
import type { Child } from '../../../ports/sandbox.ts';
import { type ClaudeConnection, ClaudeRefusal, type Connect, type ConnectRequest } from '../connection.ts';
import { giveServers, serversFor } from '../mcp-servers.ts';
import type { ClaudeOptions } from '../options.ts';
import { type Abilities, abilitiesOf } from './abilities.ts';
import { argumentsFor, checkRequest } from './arguments.ts';
import { OneAPromptConnection } from './one-a-prompt.ts';
import { refusalOf } from './refusal.ts';
import { WarmConnection } from './warm.ts';

/** The program to start for a working directory, and what that version of it can do. */
export interface Program {
  readonly command: readonly string[];
  readonly can: Abilities;
  /** Where it was found, for people. */
  readonly where: string;
}

/** `find` throws `agent_unavailable` when there is none. */
export function cliConnect(find: (work: string) => Promise<Program>, options: ClaudeOptions): Connect {
  return async (request) => {
    const { command, can } = await find(request.sandbox.work);
    checkRequest(request, can);
    const servers = serversFor(options.mcpServers, request.noTools, can);
    throwIfAborted(request.signal);
    const start: Start = (how) =>
      request.sandbox.spawn([...command, ...argumentsFor({ ...request, how }, options, can)], {
        env: environment(request),
      });
    return can.warm ? connectWarm(request, start, servers) : connectOneAPrompt(request, start);
  };
}

type Start = (how: ConnectRequest['how']) => Promise<Child>;

async function connectWarm(
  request: ConnectRequest,
  start: Start,
  servers: ReturnType<typeof serversFor>,
): Promise<ClaudeConnection> {
  const child = await start(request.how);
  const connection = new WarmConnection(child, (question) => request.onPermission(question));
  const stop = () => child.kill('SIGKILL');
  request.signal.addEventListener('abort', stop, { once: true });
  if (request.signal.aborted) stop();
  try {
    const up = (await connection.start()) && (await giveServers(servers, (given) => connection.setServers(given)));
    throwIfAborted(request.signal);
    if (up) return connection;
    const ended = await connection.whyEnded();
    throw refusalOf(ended) ?? notStarted(request, ended);
  } catch (error) {
    await connection.kill();
    throw error;
  } finally {
    request.signal.removeEventListener('abort', stop);
  }
}

async function connectOneAPrompt(request: ConnectRequest, start: Start): Promise<ClaudeConnection> {
  const next = (id: string | null) => start(id === null ? request.how : { kind: 'resume', id });
  const connection = new OneAPromptConnection(await next(null), null, next);
  if (request.signal.aborted) await connection.kill();
  throwIfAborted(request.signal);
  return connection;
}

/** Another version in the middle of a conversation is for the person to choose. */
function environment({ env }: ConnectRequest): Record<string, string> {
  return { DISABLE_AUTOUPDATER: '1', ...env };
}

function throwIfAborted(signal: AbortSignal): void {
  if (signal.aborted) throw new ClaudeRefusal('refused', 'opening was cancelled');
}

function notStarted({ how }: ConnectRequest, ending: string): Error {
  const message = `Claude ended ${ending}, before its session was open`;
  // Another way of restoring may still work; a new session is the last of them.
  if (how.kind === 'resume') return new ClaudeRefusal('refused', message);
  return new ThroughlineError('agent_unavailable', `${message}.`, {
    hint: '"throughline agents" shows which Claude is used; run it by hand to see what it says.',
  });
}

/** Throws `agent_unavailable` for a version that cannot hold a conversation. */
export async function programOf(
  { command, where }: Pick<Program, 'command' | 'where'>,
  version: string,
  path: string,
): Promise<Program> {
  const can = await abilitiesOf(command, version, path);
  if (can !== null) return { command, can, where };
  throw new ThroughlineError('agent_unavailable', `Claude ${version} (${command[0]}) is too old: it cannot resume.`, {
    hint: 'Update it, or run "throughline agents install claude".',
  });
}
