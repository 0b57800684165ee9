import { createRequire } from 'node:module';
import { ThroughlineError } from '../../../core/errors.ts';
import type { ClaudeMessage, ClaudeUserMessage } from '../connection.ts';
import type { SpawnedClaude } from './spawned.ts';

/* What we use of the Agent SDK. It is an optional package, so its own types may not be there. */

export interface Sdk {
  query(request: { prompt: AsyncIterable<ClaudeUserMessage>; options: SdkOptions }): SdkQuery;
}

export interface SdkQuery extends AsyncIterable<ClaudeMessage> {
  interrupt(): Promise<unknown>;
  /** Resolves when Claude has answered for the first time; rejects when it ended before. */
  initializationResult(): Promise<unknown>;
  setPermissionMode(mode: string): Promise<void>;
  applyFlagSettings(settings: { readonly effortLevel: string | null }): Promise<void>;
  /** Resolves when they are connected or have failed. */
  setMcpServers(servers: Readonly<Record<string, object>>): Promise<unknown>;
}

export interface SdkOptions {
  readonly cwd: string;
  readonly env: Record<string, string>;
  readonly resume?: string;
  readonly resumeSessionAt?: string;
  readonly resumeDropsTurn?: string;
  readonly sessionId?: string;
  readonly model?: string;
  readonly pathToClaudeCodeExecutable?: string;
  readonly allowDangerouslySkipPermissions?: boolean;
  readonly settingSources?: readonly string[];
  /** Left out: all that Claude has. */
  readonly tools?: readonly string[];
  readonly disallowedTools: readonly string[];
  readonly settings: object;
  readonly systemPrompt: { readonly type: 'preset'; readonly preset: 'claude_code'; readonly append?: string };
  readonly maxTurns?: number;
  readonly effort?: string;
  readonly additionalDirectories?: readonly string[];
  readonly agents?: Readonly<Record<string, object>>;
  /** Arguments of Claude's program, by their names without the dashes. */
  readonly extraArgs: Readonly<Record<string, string>>;
  readonly includePartialMessages: boolean;
  /** A prompt is taken literally: no slash commands, no files inserted for an @. */
  readonly verbatimPrompts: boolean;
  readonly strictMcpConfig: boolean;
  canUseTool(name: string, input: Record<string, unknown>, about: ToolQuestion): Promise<unknown>;
  spawnClaudeCodeProcess(start: SdkSpawn): SpawnedClaude;
}

export interface ToolQuestion {
  readonly signal: AbortSignal;
  readonly suggestions?: readonly unknown[];
  readonly toolUseID?: string;
  readonly title?: string;
  readonly suppressAlwaysAllowRule?: boolean;
}

export interface SdkSpawn {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** Loads the SDK from the file that was found. Throws `agent_unavailable`. */
export function loadSdk(file: string): Sdk {
  try {
    const sdk = createRequire(file)(file) as Partial<Sdk>;
    if (typeof sdk.query === 'function') return sdk as Sdk;
  } catch (cause) {
    throw unusable(file, cause);
  }
  throw unusable(file, undefined);
}

function unusable(file: string, cause: unknown): ThroughlineError {
  return new ThroughlineError('agent_unavailable', `The Agent SDK at ${file} cannot be used.`, {
    hint: 'Install it again with "throughline agents install claude".',
    cause,
  });
}
