import { addAbortListener } from 'node:events';
import { ThroughlineError } from '../../../core/errors.ts';
import { given } from '../../../core/input/arguments.ts';
import type { Agent } from '../../../ports/agent.ts';
import type { OpenSandbox } from '../../../ports/sandbox.ts';
import { claudeAgent } from '../claude-agent.ts';
import { ClaudeRefusal, type Connect, type ConnectRequest, notOpened, refusalOf } from '../connection.ts';
import { flagSettings, forbiddenTools } from '../environment.ts';
import type { FoundClaude } from '../find/find.ts';
import { giveServers } from '../mcp-servers.ts';
import { type ClaudeOptions, type ClaudeSettings, readClaudeSettings } from '../settings.ts';
import { loadSdk, type Sdk, type SdkOptions, type SdkSpawn, type ToolQuestion } from './sdk.ts';
import { SdkConnection } from './sdk-connection.ts';
import { SpawnedClaude } from './spawned.ts';

/** Claude through its Agent SDK. Throws `invalid` for unknown options. */
export function claudeSdkAgent(settings: ClaudeSettings): Agent {
  const { parts, find } = readClaudeSettings(settings, checkSdk);
  const load = async (sandbox: OpenSandbox) => {
    const { sdk, command } = await find(sandbox);
    return { sdk: loadSdk(sdk), command };
  };
  return claudeAgent({ ...parts, find, connect: sdkConnect(load, parts.options) });
}

/** Throws `agent_unavailable` where the SDK, or a program for it, is missing or cannot be used. */
function checkSdk({ sdk, command, version, where, ...found }: FoundClaude) {
  const problem = found.problem ?? found.sdkProblem;
  if (problem !== null) throw new ThroughlineError('agent_unavailable', problem);
  if (sdk !== null && version !== null) return { sdk, command, version, where };
  throw new ThroughlineError('agent_unavailable', 'The Agent SDK was not found.', {
    hint: 'Run "throughline agents install claude", or use the adapter "claude-cli".',
  });
}

interface FoundSdk {
  readonly sdk: Sdk;
  /** The program, and its first arguments if it has any. */
  readonly command: readonly string[];
}

/** `find`: the SDK and program for a sandbox. Throws `agent_unavailable` when there is none. */
export function sdkConnect(find: (sandbox: OpenSandbox) => Promise<FoundSdk>, options: ClaudeOptions): Connect {
  return async (request) => {
    const { sdk, command } = await find(request.sandbox);
    const connection = startQuery(sdk, (spawned) => optionsFor(request, options, command, spawned));
    using _ = addAbortListener(request.signal, () => void connection.kill());
    try {
      await connection.ready;
      // Tools of MCP servers are tools as well.
      const servers = request.noTools ? [] : options.mcpServers;
      await giveServers(servers, (given) => connection.setServers(given));
      return connection;
    } catch (error) {
      const runs = connection.alive;
      await connection.kill();
      throw notStarted(error, request, { connection, runs });
    }
  };
}

/** The SDK throws when it finds something wrong before it starts Claude. */
function startQuery(...given: ConstructorParameters<typeof SdkConnection>): SdkConnection {
  try {
    return new SdkConnection(...given);
  } catch (cause) {
    throw new ThroughlineError('agent_unavailable', `The Agent SDK did not start Claude: ${String(cause)}`, {
      hint: 'Check the agent’s settings, or install it again with "throughline agents install claude".',
      cause,
    });
  }
}

function optionsFor(
  { sandbox, env, how, noTools, model, onPermission }: ConnectRequest,
  options: ClaudeOptions,
  command: readonly string[],
  spawned: (process: SpawnedClaude) => void,
): SdkOptions {
  const { permissionMode, appendSystemPrompt: append, maxTurns, effort } = options;
  return {
    cwd: sandbox.work,
    env: { ...env },
    ...sessionOptions(how),
    ...(model === null ? {} : { model }),
    ...given({ pathToClaudeCodeExecutable: command[0], maxTurns, effort }),
    ...(permissionMode === 'bypassPermissions' ? { allowDangerouslySkipPermissions: true } : {}),
    ...toolOptions(options, noTools),
    extraArgs: allowingArguments(options, noTools),
    disallowedTools: [...forbiddenTools(env), ...(options.disallowedTools ?? [])],
    settings: flagSettings(options, noTools),
    systemPrompt: { type: 'preset', preset: 'claude_code', ...given({ append }) },
    includePartialMessages: true,
    verbatimPrompts: true,
    strictMcpConfig: true,
    canUseTool: (toolName, input, about) => onPermission(questionOf(toolName, input, about)),
    spawnClaudeCodeProcess(start: SdkSpawn) {
      const whole = [start.command, ...command.slice(1), ...start.args];
      const env = given(start.env) as Record<string, string>;
      const process = new SpawnedClaude(sandbox.spawn(whole, { env }));
      spawned(process);
      return process;
    },
  };
}

/** Without tools there are no settings files: their hooks run without a permission. */
function toolOptions(options: ClaudeOptions, noTools: boolean) {
  if (noTools) return { tools: [], settingSources: [] };
  const { settingSources, additionalDirectories, agents } = options;
  return given({ settingSources, additionalDirectories, agents });
}

/**
 * What needs no question, as arguments of Claude's program. As options of the SDK, they are the same arguments, but for a program that
 * also answers questions the SDK prints a warning to our stderr at each start: that it gets no questions about these tools.
 */
function allowingArguments({ permissionMode, allowedTools }: ClaudeOptions, noTools: boolean) {
  return given({
    'permission-mode': permissionMode,
    allowedTools: noTools ? undefined : allowedTools?.join(','),
  }) as Record<string, string>;
}

function sessionOptions(how: ConnectRequest['how']) {
  if (how.kind === 'new') return { sessionId: how.id };
  const { id, rewind } = how;
  return { resume: id, ...(rewind && { resumeSessionAt: rewind.at, resumeDropsTurn: rewind.drops }) };
}

function questionOf(toolName: string, input: Record<string, unknown>, about: ToolQuestion) {
  const { signal, suggestions = [], toolUseID = null, title = null, suppressAlwaysAllowRule } = about;
  return {
    toolName,
    input,
    toolUseId: toolUseID,
    suggestions: suppressAlwaysAllowRule === true ? [] : suggestions,
    title,
    signal,
  };
}

/** Claude refused the session, or did not start at all. `runs`: it had not ended before we ended it. */
function notStarted(
  error: unknown,
  { how }: ConnectRequest,
  { connection, runs }: { readonly connection: SdkConnection; readonly runs: boolean },
): Error {
  for (const fault of [connection.spawned?.fault, error]) if (fault instanceof ThroughlineError) return fault;
  const words = [connection.spawned?.stderrTail, error instanceof Error ? error.message : '']
    .filter(Boolean)
    .join('\n');
  const refusal = refusalOf(words);
  if (refusal !== null) return refusal;
  if (runs && error instanceof Error) return notOpened(how, error.message);
  const message = `Claude ended ${connection.ending ?? ''} before its session was open: ${words}`;
  // Another way of restoring may still work. A new session is the last one.
  if (how.kind === 'resume') return new ClaudeRefusal('refused', message);
  return new ThroughlineError('agent_unavailable', message, {
    hint: 'Run "claude" by hand to see its error.',
    cause: error,
  });
}
