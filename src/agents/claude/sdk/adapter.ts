import { ThroughlineError } from '../../../core/errors.ts';
import type { Agent } from '../../../ports/agent.ts';
import { claudeAgent } from '../claude-agent.ts';
import { type FindSettings, type FoundClaude, findClaude } from '../find.ts';
import { parseClaudeOptions } from '../options.ts';
import { sdkConnect } from './connect.ts';
import { loadSdk } from './sdk.ts';

export interface ClaudeSdkSettings {
  readonly name: string;
  readonly command?: readonly string[] | undefined;
  readonly package?: string | undefined;
  readonly model?: string | undefined;
  readonly env: Readonly<Record<string, string>>;
  readonly options: Readonly<Record<string, unknown>>;
  /** The folder filled by `throughline agents install claude`. */
  readonly installed: string;
}

/** Versions whose profile without tools was proved by counting side effects (test/agents/claude-sdk.test.ts). */
const WITHOUT_TOOLS: ReadonlySet<string> = new Set(['2.1.325']);

/** Claude through its Agent SDK. Throws `invalid` for options that it does not have. */
export function claudeSdkAgent({ name, model, env, options: given, ...where }: ClaudeSdkSettings): Agent {
  const options = parseClaudeOptions(name, given);
  const path = env.PATH ?? process.env.PATH ?? '';
  const settings: FindSettings = { ...where, path, trustProject: options.trustProject };
  const find = async (cwd: string | null) => usable(await findClaude(settings, cwd));
  const found = new Map<string, ReturnType<typeof find>>();
  return claudeAgent({
    name,
    env,
    options,
    model: model ?? null,
    connect: sdkConnect(async (cwd) => {
      // Only a project that is trusted can have a Claude of its own; without one, all directories have the same.
      const key = options.trustProject ? cwd : '';
      const there = found.get(key) ?? find(options.trustProject ? cwd : null);
      found.set(key, there);
      there.catch(() => found.delete(key));
      const { sdk, command } = await there;
      return { sdk: loadSdk(sdk), command };
    }, options),
    async probe() {
      const { version, where: place } = await find(null);
      return { version, where: place, assignsIds: true, noTools: WITHOUT_TOOLS.has(version) };
    },
  });
}

/** Throws `agent_unavailable` where the SDK, or a program for it, is missing. */
function usable({ sdk, command, version, where, problem }: FoundClaude) {
  if (sdk !== null && command.length > 0 && version !== null) return { sdk, command, version, where };
  const missing = problem ?? 'The Agent SDK was not found.';
  throw new ThroughlineError('agent_unavailable', missing, {
    hint: 'run "throughline agents install claude", or use the adapter "claude-cli"',
  });
}
