import { statSync } from 'node:fs';
import { ThroughlineError } from '../../core/errors.ts';
import { shown } from '../../core/input/arguments.ts';
import { type McpServer, parseMcpServers } from '../shared/mcp-servers.ts';
import { type FindSettings, type FoundClaude, findClaude } from './find/find.ts';

/** The settings of one agent that is Claude, for both adapters. */
export interface ClaudeSettings {
  readonly name: string;
  readonly command?: readonly string[] | undefined;
  readonly package?: string | undefined;
  readonly model?: string | undefined;
  readonly env: Readonly<Record<string, string>>;
  readonly options: Readonly<Record<string, unknown>>;
  /** The folder filled by `throughline agents install claude`. */
  readonly installed: string;
  readonly newMark?: FindSettings['newMark'];
}

/** What `options` of the settings may hold. */
export interface ClaudeOptions {
  /** Left out: Claude asks, as it does by default. */
  readonly permissionMode?: string;
  /** Which settings files of Claude count; left out: those of the user, the project, and the local ones. */
  readonly settingSources?: readonly string[];
  /** Which config directory: the user's own, with its login and settings, or one in the conversation's sandbox. */
  readonly home: 'user' | 'sandbox';
  /** Whether a Claude in the node_modules of the working directory may be started. */
  readonly trustProject: boolean;
  /** The model's window in tokens; left out: derived from the model's name. */
  readonly window?: number;
  /** Started with every session, and again after every restore. No others are started. */
  readonly mcpServers: readonly McpServer[];
}

/**
 * Reads the settings, and returns `find`, which looks for Claude and passes what it found through `check`. A result is
 * remembered until another Claude is installed by name; a failure is not, because Claude may be installed meanwhile. Throws
 * `invalid` for unknown options.
 */
export function readClaudeSettings<T>(
  { name, model, env, options: given, ...places }: ClaudeSettings,
  check: (found: FoundClaude) => T,
) {
  const options = parseClaudeOptions(name, given);
  const path = env.PATH ?? process.env.PATH ?? '';
  const settings: FindSettings = { ...places, path, trustProject: options.trustProject };
  const remembered = new Map<string, Promise<T>>();
  const find = (cwd: string | null): Promise<T> => {
    // Only a trusted project can have a Claude of its own; otherwise the directory makes no difference.
    const from = options.trustProject ? cwd : null;
    // Installing replaces the folder.
    const key = JSON.stringify([from, statSync(places.installed, { throwIfNoEntry: false })?.ino]);
    const found = remembered.get(key) ?? findClaude(settings, from).then(check);
    remembered.set(key, found);
    found.catch(() => remembered.delete(key));
    return found;
  };
  return { parts: { name, env, options, model: model ?? null, newMark: places.newMark }, find };
}

type PlainOptions = Omit<ClaudeOptions, 'mcpServers'>;

const MODES = ['default', 'acceptEdits', 'plan', 'dontAsk', 'auto', 'bypassPermissions'];
const SOURCES = ['user', 'project', 'local'];

/** For each option: whether a value is valid, and what is, in words. */
const OPTIONS: { readonly [name in keyof PlainOptions]-?: readonly [(value: unknown) => boolean, string] } = {
  permissionMode: [(value) => MODES.includes(value as string), `one of ${MODES.join(', ')}`],
  settingSources: [
    (value) => Array.isArray(value) && value.every((one) => SOURCES.includes(one)),
    `a list of ${SOURCES.join(', ')}`,
  ],
  home: [(value) => value === 'user' || value === 'sandbox', 'user or sandbox'],
  trustProject: [(value) => typeof value === 'boolean', 'true or false'],
  window: [(value) => Number.isSafeInteger(value) && (value as number) > 0, 'a whole number of tokens'],
};

/** Throws `invalid` for unknown options and invalid values. */
export function parseClaudeOptions(agent: string, options: Readonly<Record<string, unknown>>): ClaudeOptions {
  const { mcpServers = [], ...plain } = options;
  for (const [name, value] of Object.entries(plain)) {
    if (!Object.hasOwn(OPTIONS, name)) {
      const all = [...Object.keys(OPTIONS), 'mcpServers'].join(', ');
      throw invalid(`"agents.${agent}.options.${name}" is not known; known are ${all}`);
    }
    const [isValid, allowed] = OPTIONS[name as keyof PlainOptions];
    if (!isValid(value)) throw invalid(`"agents.${agent}.options.${name}" must be ${allowed}, not ${shown(value)}`);
  }
  const servers = parseMcpServers(mcpServers, `agents.${agent}.options.mcpServers`, invalid);
  return { home: 'user', trustProject: false, ...plain, mcpServers: servers };
}

function invalid(what: string): ThroughlineError {
  return new ThroughlineError('invalid', `Settings: ${what}.`);
}
