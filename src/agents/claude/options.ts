import { ThroughlineError } from '../../core/errors.ts';
import { shown } from '../../core/shown.ts';
import { type McpServer, parseMcpServers } from '../shared/mcp-servers.ts';

/** What the settings of an agent may say in `options`, for both ways of running Claude. */
export interface ClaudeOptions {
  /** Left out: Claude asks, as it does by default. */
  readonly permissionMode?: string;
  /** Which settings files of Claude count; left out: those of the user, the project, and the local ones. */
  readonly settingSources?: readonly string[];
  /** Whose config directory: the user's own, with its login and settings, or one in the conversation's sandbox. */
  readonly home: 'user' | 'sandbox';
  /** Whether a Claude in the node_modules of the working directory may be started. */
  readonly trustProject: boolean;
  /** The model's window in tokens; left out: as its name says. */
  readonly window?: number;
  /** Started with every session, and again after every restore; no others are. */
  readonly mcpServers: readonly McpServer[];
}

type PlainOptions = Omit<ClaudeOptions, 'mcpServers'>;

const MODES = ['default', 'acceptEdits', 'plan', 'dontAsk', 'auto', 'bypassPermissions'];
const SOURCES = ['user', 'project', 'local'];

const PARSERS: { readonly [name in keyof PlainOptions]-?: (value: unknown) => boolean } = {
  permissionMode: (value) => MODES.includes(value as string),
  settingSources: (value) => Array.isArray(value) && value.every((one) => SOURCES.includes(one)),
  home: (value) => value === 'user' || value === 'sandbox',
  trustProject: (value) => typeof value === 'boolean',
  window: (value) => Number.isSafeInteger(value) && (value as number) > 0,
};

const ALLOWED: Record<keyof PlainOptions, string> = {
  permissionMode: `one of ${MODES.join(', ')}`,
  settingSources: `a list of ${SOURCES.join(', ')}`,
  home: 'user or sandbox',
  trustProject: 'true or false',
  window: 'a whole number of tokens',
};

/** Throws `invalid` for options that Claude does not have. */
export function parseClaudeOptions(agent: string, options: Readonly<Record<string, unknown>>): ClaudeOptions {
  const { mcpServers = [], ...plain } = options;
  for (const [name, value] of Object.entries(plain)) {
    if (!Object.hasOwn(PARSERS, name)) {
      const all = [...Object.keys(PARSERS), 'mcpServers'].join(', ');
      throw fault(`"agents.${agent}.options.${name}" is not known; known are ${all}`);
    }
    const known = name as keyof PlainOptions;
    if (!PARSERS[known](value)) {
      throw fault(`"agents.${agent}.options.${name}" must be ${ALLOWED[known]}, not ${shown(value)}`);
    }
  }
  const servers = parseMcpServers(mcpServers, `agents.${agent}.options.mcpServers`, fault);
  return { home: 'user', trustProject: false, ...plain, mcpServers: servers };
}

function fault(what: string): ThroughlineError {
  return new ThroughlineError('invalid', `Settings: ${what}.`);
}
