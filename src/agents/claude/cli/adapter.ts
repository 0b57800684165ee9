import { addAbortListener } from 'node:events';
import { ThroughlineError } from '../../../core/errors.ts';
import type { Agent } from '../../../ports/agent.ts';
import { claudeAgent } from '../claude-agent.ts';
import { ClaudeRefusal, type Connect, type ConnectRequest, refusalOf } from '../connection.ts';
import { forbiddenTools } from '../environment.ts';
import type { FoundClaude } from '../find/find.ts';
import { giveServers } from '../mcp-servers.ts';
import { type ClaudeOptions, type ClaudeSettings, readClaudeSettings } from '../settings.ts';
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
    // The user chooses when to update: never in the middle of a conversation.
    const env = { DISABLE_AUTOUPDATER: '1', ...request.env };
    const child = await sandbox.spawn([...command, ...argumentsFor(request, options)], { env });
    const connection = new CliConnection(child, (question) => request.onPermission(question));
    using _ = addAbortListener(signal, () => child.kill('SIGKILL'));
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
    }
  };
}

/**
 * The command-line arguments of Claude. Secrets go through the environment alone: everybody on the machine can read arguments.
 *
 * Settings are given inline, on top of the user's, and no file is edited. Without `cleanupPeriodDays` any `claude -p` deletes
 * session files that are older than a month, also those of other conversations.
 */
export function argumentsFor(
  { how, model, noTools, env }: Pick<ConnectRequest, 'how' | 'model' | 'noTools' | 'env'>,
  { permissionMode, settingSources }: Pick<ClaudeOptions, 'permissionMode' | 'settingSources'>,
): string[] {
  // Settings files could contain hooks, which run without a question.
  const sources = noTools ? [] : settingSources;
  return [
    '--print',
    ...['--output-format', 'stream-json', '--verbose', '--include-partial-messages'],
    ...['--input-format', 'stream-json', '--permission-prompt-tool', 'stdio'],
    ...['--settings', JSON.stringify({ cleanupPeriodDays: 36_500 })],
    ...(model === null ? [] : ['--model', model]),
    ...(permissionMode === undefined ? [] : ['--permission-mode', permissionMode]),
    ...(permissionMode === 'bypassPermissions' ? ['--allow-dangerously-skip-permissions'] : []),
    // Only the MCP servers of our own settings are started, not those named in the project's files.
    '--strict-mcp-config',
    ...['--disallowedTools', forbiddenTools(env).join(',')],
    ...(noTools ? ['--tools', ''] : []),
    ...(sources === undefined ? [] : ['--setting-sources', sources.join(',')]),
    ...sessionArguments(how),
  ];
}

/** `--session-id` opens an id that we have recorded, once; afterwards it is resumed (R1). */
function sessionArguments(how: ConnectRequest['how']): string[] {
  if (how.kind === 'new') return ['--session-id', how.id];
  const { id, rewind } = how;
  return ['--resume', id, ...(rewind ? ['--resume-session-at', rewind.at, '--resume-drops-turn', rewind.drops] : [])];
}

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** Throws a `ClaudeRefusal` for anything but a UUID: Claude would take it for a *title*, and resume a session of that title. */
export function checkId({ kind, id }: ConnectRequest['how']): void {
  if (UUID.test(id)) return;
  const message = `${JSON.stringify(id)} is not a session id of Claude`;
  throw new ClaudeRefusal(kind === 'resume' ? 'not_found' : 'refused', message);
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
