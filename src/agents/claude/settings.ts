import { type FindSettings, type FoundClaude, findClaude } from './find.ts';
import { type ClaudeOptions, parseClaudeOptions } from './options.ts';

/** How a Claude is set, however it is run. */
export interface ClaudeSettings {
  readonly name: string;
  readonly command?: readonly string[] | undefined;
  readonly package?: string | undefined;
  readonly model?: string | undefined;
  readonly env: Readonly<Record<string, string>>;
  readonly options: Readonly<Record<string, unknown>>;
  /** The folder filled by `throughline agents install claude`. */
  readonly installed: string;
}

/**
 * What the settings say, and the look for Claude by them: `look` takes what was found, and is called again only where a look
 * failed, or in another project. Throws `invalid` for options that it does not have.
 */
export function readClaudeSettings<T>(
  { name, model, env, options: given, ...where }: ClaudeSettings,
  look: (found: FoundClaude, path: string) => T | Promise<T>,
) {
  const options: ClaudeOptions = parseClaudeOptions(name, given);
  const path = env.PATH ?? process.env.PATH ?? '';
  const settings: FindSettings = { ...where, path, trustProject: options.trustProject };
  const looked = new Map<string | null, Promise<T>>();
  const find = (cwd: string | null): Promise<T> => {
    // Only a project that is trusted can have a Claude of its own; without one, all directories have the same.
    const key = options.trustProject ? cwd : null;
    const found = looked.get(key) ?? findClaude(settings, key).then((claude) => look(claude, path));
    looked.set(key, found);
    found.catch(() => looked.delete(key)); // it may have been installed by the next time
    return found;
  };
  return { parts: { name, env, options, model: model ?? null }, find };
}

/** Versions whose profile without tools was proved by counting side effects (test/agents/claude-{cli,sdk}.test.ts). */
export const WITHOUT_TOOLS: ReadonlySet<string> = new Set(['2.1.325']);
