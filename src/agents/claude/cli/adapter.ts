import { addAbortListener } from 'node:events';
import { ThroughlineError } from '../../../core/errors.ts';
import { given } from '../../../core/input/arguments.ts';
import type { Agent } from '../../../ports/agent.ts';
import type { OpenSandbox } from '../../../ports/sandbox.ts';
import { claudeAgent } from '../claude-agent.ts';
import { ClaudeRefusal, type Connect, type ConnectRequest, notOpened, refusalOf, UUID } from '../connection.ts';
import { flagSettings, forbiddenTools } from '../environment.ts';
import type { FoundClaude } from '../find/find.ts';
import { giveServers } from '../mcp-servers.ts';
import { type ClaudeOptions, type ClaudeSettings, readClaudeSettings } from '../settings.ts';
import { CliConnection } from './cli-connection.ts';

/** Claude through its program alone, without the SDK. Throws `invalid` for unknown options. */
export function claudeCliAgent(settings: ClaudeSettings): Agent {
  const { parts, find } = readClaudeSettings(settings, checkProgram);
  return claudeAgent({ ...parts, find, connect: cliConnect(find, parts.options) });
}

/** Throws `agent_unavailable` where there is no program, or one that cannot be used. */
function checkProgram({ command, version, where, problem }: FoundClaude) {
  if (version !== null && problem === null) return { command, version, where };
  throw new ThroughlineError('agent_unavailable', problem ?? 'Claude was not found.');
}

/** `find`: the program to start in a sandbox. Throws `agent_unavailable` when there is none. */
export function cliConnect(
  find: (sandbox: OpenSandbox) => Promise<{ readonly command: readonly string[] }>,
  options: ClaudeOptions,
): Connect {
  return async (request) => {
    const { sandbox, noTools, signal } = request;
    const { command } = await find(sandbox);
    checkId(request.how);
    throwIfAborted(signal);
    // Claude must not update itself in the middle of a conversation.
    const env = { DISABLE_AUTOUPDATER: '1', ...request.env };
    const child = await sandbox.spawn([...command, ...argumentsFor(request, options)], { env });
    const connection = new CliConnection(child, (question) => request.onPermission(question));
    using _ = addAbortListener(signal, () => child.kill('SIGKILL'));
    try {
      // Tools of MCP servers are tools as well.
      const servers = noTools ? [] : options.mcpServers;
      const { appendSystemPrompt, agents } = options;
      const started = await connection.start(given({ appendSystemPrompt, agents: noTools ? undefined : agents }));
      throwIfAborted(signal);
      if (started?.ok === false) throw notOpened(request.how, started.error);
      const ready = started !== null && (await giveServers(servers, (given) => connection.setServers(given)));
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

/** The command-line arguments of Claude. Secrets go through the environment alone: everybody on the machine can read arguments. */
export function argumentsFor(
  { how, model, noTools, env }: Pick<ConnectRequest, 'how' | 'model' | 'noTools' | 'env'>,
  options: Omit<ClaudeOptions, 'home' | 'trustProject' | 'mcpServers'>,
): string[] {
  const { permissionMode, maxTurns, effort } = options;
  return [
    '--print',
    ...['--output-format', 'stream-json', '--verbose', '--include-partial-messages'],
    ...['--input-format', 'stream-json', '--permission-prompt-tool', 'stdio'],
    ...['--settings', JSON.stringify(flagSettings(options, noTools))],
    ...(model === null ? [] : ['--model', model]),
    ...(effort === undefined ? [] : ['--effort', effort]),
    ...(maxTurns === undefined ? [] : ['--max-turns', String(maxTurns)]),
    ...(permissionMode === undefined ? [] : ['--permission-mode', permissionMode]),
    ...(permissionMode === 'bypassPermissions' ? ['--allow-dangerously-skip-permissions'] : []),
    // Only the MCP servers of our own settings are started, not those named in the project's files.
    '--strict-mcp-config',
    ...['--disallowedTools', [...forbiddenTools(env), ...(options.disallowedTools ?? [])].join(',')],
    ...toolArguments(options, noTools),
    ...sessionArguments(how),
  ];
}

/** Without tools there are no settings files: their hooks run without a permission. */
function toolArguments(options: Parameters<typeof argumentsFor>[1], noTools: boolean): string[] {
  if (noTools) return ['--tools', '', '--setting-sources', ''];
  const { settingSources, allowedTools, additionalDirectories = [] } = options;
  return [
    ...(settingSources === undefined ? [] : ['--setting-sources', settingSources.join(',')]),
    ...(allowedTools === undefined ? [] : ['--allowedTools', allowedTools.join(',')]),
    ...additionalDirectories.flatMap((directory) => ['--add-dir', directory]),
  ];
}

/** `--session-id` opens an id that we have recorded, once; afterwards it is resumed (R1). */
function sessionArguments(how: ConnectRequest['how']): string[] {
  if (how.kind === 'new') return ['--session-id', how.id];
  const { id, rewind } = how;
  return ['--resume', id, ...(rewind ? ['--resume-session-at', rewind.at, '--resume-drops-turn', rewind.drops] : [])];
}

/** Throws a `ClaudeRefusal` for anything but a UUID: Claude would treat it as a *title*, and resume a session with that title. */
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
  // Another way of restoring may still work. A new session is the last one.
  if (how.kind === 'resume') return new ClaudeRefusal('refused', message);
  return new ThroughlineError('agent_unavailable', `${message}.`, {
    hint: '"throughline agents" shows which Claude is used; run it by hand to see its error.',
  });
}
