import { ThroughlineError } from '../../../core/errors.ts';
import type { Agent } from '../../../ports/agent.ts';
import { claudeAgent } from '../claude-agent.ts';
import { type FindSettings, findClaude } from '../find.ts';
import { parseClaudeOptions } from '../options.ts';
import { cliConnect, type Program, programOf } from './connect.ts';

export interface ClaudeCliSettings {
  readonly name: string;
  readonly command?: readonly string[] | undefined;
  readonly package?: string | undefined;
  readonly model?: string | undefined;
  readonly env: Readonly<Record<string, string>>;
  readonly options: Readonly<Record<string, unknown>>;
  /** The folder filled by `throughline agents install claude`. */
  readonly installed: string;
}

/** Versions whose profile without tools was proved by counting side effects (test/agents/claude-cli.test.ts). */
const WITHOUT_TOOLS: ReadonlySet<string> = new Set(['2.1.325']);

/** Claude through its program alone, without the SDK. Throws `invalid` for options that it does not have. */
export function claudeCliAgent({ name, model, env, options: given, ...where }: ClaudeCliSettings): Agent {
  const options = parseClaudeOptions(name, given);
  const path = env.PATH ?? process.env.PATH ?? '';
  const settings: FindSettings = { ...where, path, trustProject: options.trustProject };
  const found = new Map<string | null, Promise<Program>>();
  // Only a project that is trusted can have a Claude of its own; without one, all directories have the same.
  const find = (cwd: string | null) => {
    const key = options.trustProject ? cwd : null;
    const program = found.get(key) ?? programIn(settings, key);
    found.set(key, program);
    program.catch(() => found.delete(key)); // it may have been installed by the next time
    return program;
  };
  return claudeAgent({
    name,
    env,
    options,
    model: model ?? null,
    connect: cliConnect(find, options),
    async probe() {
      const { can, where: place } = await find(null);
      const noTools = can.noTools && WITHOUT_TOOLS.has(can.version);
      return { version: can.version, where: place, assignsIds: can.assignsIds, noTools };
    },
  });
}

/** Throws `agent_unavailable` where there is no program, or one that is too old. */
async function programIn(settings: FindSettings, cwd: string | null): Promise<Program> {
  const { command, version, where, problem } = await findClaude(settings, cwd);
  if (version !== null && problem === null) return programOf({ command, where }, version, settings.path);
  throw new ThroughlineError('agent_unavailable', problem ?? 'Claude was not found.', {
    hint: '"throughline agents" shows where it was looked for.',
  });
}
