import { ThroughlineError } from '../../../core/errors.ts';
import type { Agent } from '../../../ports/agent.ts';
import { claudeAgent } from '../claude-agent.ts';
import { ClaudeRefusal, type Connect, type ConnectRequest, refusalOf } from '../connection.ts';
import type { FoundClaude } from '../find/find.ts';
import { giveServers } from '../mcp-servers.ts';
import { type ClaudeOptions, type ClaudeSettings, readClaudeSettings } from '../settings.ts';
import { argumentsFor, checkId } from './arguments.ts';
import { CliConnection } from './cli-connection.ts';

/** Claude through its program alone, without the SDK. Throws `invalid` for unknown options. */
export function claudeCliAgent(settings: ClaudeSettings): Agent {
  const { parts, find } = readClaudeSettings(settings, checkProgram);
  return claudeAgent({ ...parts, find: () => find(null), connect: cliConnect(find, parts.options) });
}

/** Throws `agent_unavailable` where there is no program, or one that cannot be used. */
function checkProgram({ command, version, where, problem }: FoundClaude) {
  if (version !== null && problem === null) return { command, version, where };
  throw new ThroughlineError('agent_unavailable', problem ?? 'Claude was not found.');
}

/** `find`: the program to start for a working directory. Throws `agent_unavailable` when there is none. */
export function cliConnect(
  find: (work: string) => Promise<{ readonly command: readonly string[] }>,
  options: ClaudeOptions,
): Connect {
  return async (request) => {
    const { sandbox, noTools, signal } = request;
    const { command } = await find(sandbox.work);
    checkId(request.how);
    throwIfAborted(signal);
    const child = await sandbox.spawn([...command, ...argumentsFor(request, options)], { env: environment(request) });
    const connection = new CliConnection(child, (question) => request.onPermission(question));
    const stop = () => child.kill('SIGKILL');
    signal.addEventListener('abort', stop, { once: true });
    if (signal.aborted) stop();
    try {
      // Tools of MCP servers are tools as well.
      const servers = noTools ? [] : options.mcpServers;
      const ready = (await connection.start()) && (await giveServers(servers, (given) => connection.setServers(given)));
      throwIfAborted(signal);
      if (ready) return connection;
      const ended = await connection.whyEnded();
      throw refusalOf(ended) ?? notStarted(request, ended);
    } catch (error) {
      await connection.kill();
      throw error;
    } finally {
      signal.removeEventListener('abort', stop);
    }
  };
}

/** The user chooses when to update: never in the middle of a conversation. */
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
    hint: '"throughline agents" shows which Claude is used; run it by hand to see its error.',
  });
}
