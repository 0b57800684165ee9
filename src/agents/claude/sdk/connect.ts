import { ThroughlineError } from '../../../core/errors.ts';
import { forbiddenTools } from '../by-itself.ts';
import { refusalOf } from '../cli/refusal.ts';
import { ClaudeRefusal, type Connect, type ConnectRequest } from '../connection.ts';
import { giveServers, serversFor } from '../mcp-servers.ts';
import type { ClaudeOptions } from '../options.ts';
import type { Sdk, SdkOptions, SdkSpawn, ToolQuestion } from './sdk.ts';
import { SdkConnection } from './sdk-connection.ts';
import { SpawnedClaude } from './spawned.ts';

export interface FoundSdk {
  readonly sdk: Sdk;
  /** The program, and its first arguments if it has any. */
  readonly command: readonly string[];
  readonly version: string;
}

/** Claude through its Agent SDK, with prompt after prompt going into one process. */
export function sdkConnect(find: (cwd: string) => Promise<FoundSdk>, options: ClaudeOptions): Connect {
  return async (request) => {
    const { sdk, command, version } = await find(request.sandbox.work);
    const given = serversFor(options.mcpServers, request.noTools, { version, warm: true });
    const connection = connectionOf(sdk, (spawned) => optionsFor(request, options, command, spawned));
    const stop = () => void connection.kill();
    request.signal.addEventListener('abort', stop, { once: true });
    if (request.signal.aborted) stop();
    try {
      await connection.up;
      await giveServers(given, (servers) => connection.setServers(servers));
      return connection;
    } catch (error) {
      await connection.kill();
      throw await whyNot(error, request, connection);
    } finally {
      request.signal.removeEventListener('abort', stop);
    }
  };
}

/** What the SDK finds wrong before it starts anything, it throws. */
function connectionOf(...given: ConstructorParameters<typeof SdkConnection>): SdkConnection {
  try {
    return new SdkConnection(...given);
  } catch (cause) {
    throw new ThroughlineError('agent_unavailable', `The Agent SDK does not start Claude: ${String(cause)}`, {
      hint: 'Check the agent’s settings, or install it again with "throughline agents install claude".',
      cause,
    });
  }
}

function optionsFor(
  { sandbox, env, how, noTools, model, onPermission }: ConnectRequest,
  { permissionMode, settingSources }: ClaudeOptions,
  command: readonly string[],
  spawned: (process: SpawnedClaude) => void,
): SdkOptions {
  return {
    cwd: sandbox.work,
    env: { ...env },
    ...sessionOptions(how),
    ...(model === null ? {} : { model }),
    ...(command[0] === undefined ? {} : { pathToClaudeCodeExecutable: command[0] }),
    ...(permissionMode === undefined ? {} : { permissionMode }),
    ...(permissionMode === 'bypassPermissions' ? { allowDangerouslySkipPermissions: true } : {}),
    ...(settingSources === undefined ? {} : { settingSources }),
    // Settings could bring hooks, which run without being asked for.
    ...(noTools ? { tools: [], settingSources: [] } : {}),
    disallowedTools: forbiddenTools(env),
    // Given along and not written anywhere: any start of Claude deletes transcripts that are older.
    settings: { cleanupPeriodDays: 36_500 },
    systemPrompt: { type: 'preset', preset: 'claude_code' },
    includePartialMessages: true,
    verbatimPrompts: true,
    strictMcpConfig: true,
    canUseTool: (toolName, input, about) => onPermission(questionOf(toolName, input, about)),
    spawnClaudeCodeProcess(start: SdkSpawn) {
      const whole = [start.command, ...command.slice(1), ...start.args];
      const process = new SpawnedClaude(sandbox.spawn(whole, { env: present(start.env) }));
      spawned(process);
      return process;
    },
  };
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

function present(env: Readonly<Record<string, string | undefined>>): Record<string, string> {
  return Object.fromEntries(Object.entries(env).filter((entry): entry is [string, string] => entry[1] !== undefined));
}

/** What Claude said when it did not come up: about the session, or about itself. */
async function whyNot(error: unknown, { how }: ConnectRequest, connection: SdkConnection): Promise<Error> {
  for (const fault of [connection.fault, error]) if (fault instanceof ThroughlineError) return fault;
  const words = [connection.complaint, error instanceof Error ? error.message : ''].filter(Boolean).join('\n');
  const refusal = refusalOf(words);
  if (refusal !== null) return refusal;
  const message = `Claude ended ${connection.ending ?? ''} before it was up: ${words}`;
  // Another way of restoring may still work; a new session is the last of them.
  if (how.kind === 'resume') return new ClaudeRefusal('refused', message);
  return new ThroughlineError('agent_unavailable', message, {
    hint: 'Run "claude" by hand to see what it says.',
    cause: error,
  });
}
