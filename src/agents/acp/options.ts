import { isAbsolute } from 'node:path';
import { ThroughlineError } from '../../core/errors.ts';
import { shown } from '../../core/input/arguments.ts';
import { isObject } from '../../core/turn/content.ts';
import { type McpServer, parseMcpServers } from '../shared/mcp-servers.ts';

/** The options of an ACP agent in the settings. They apply to every session, also after a restore. */
export interface AcpOptions {
  /** The name under which it is known; null: its own name, if that is a known one. */
  readonly agent: string | null;
  /** The mode of its sessions; null: the agent's own choice. */
  readonly mode: string | null;
  /** Config options by their id. */
  readonly config: Readonly<Record<string, string | boolean>>;
  readonly mcpServers: readonly McpServer[];
  /** Additional directories in which it may act; absolute paths. */
  readonly directories: readonly string[];
  /** The id of the login method to use before a session is opened; null: none. */
  readonly auth: string | null;
  /** The model's window in tokens; null: what the agent reports. */
  readonly window: number | null;
  /** A mode in which no tool can run, tested by the person on exactly this version; null: none is known. */
  readonly noTools: { readonly version: string; readonly mode: string } | null;
  /** How long the agent may take to open a session. */
  readonly openMs: number;
  /** How long the agent may send nothing while it opens a session again. Then it is ended, and the next rung is used. */
  readonly silentMs: number;
  /** After a load: how long without an update counts as the end. Only used while the repeated history is not complete. */
  readonly quietMs: number;
  /** After a load: how long to wait in total. */
  readonly lateMs: number;
  /** How long the agent may take to stop when a turn is cancelled. Then it is killed. */
  readonly cancelGraceMs: number;
}

export const ACP_DEFAULTS: AcpOptions = {
  agent: null,
  mode: null,
  config: {},
  mcpServers: [],
  directories: [],
  auth: null,
  window: null,
  noTools: null,
  openMs: 120_000,
  silentMs: 60_000,
  quietMs: 2_000,
  lateMs: 30_000,
  cancelGraceMs: 5_000,
};

const isText = (value: unknown): value is string => typeof value === 'string' && value !== '';
const isCount = (value: unknown) => Number.isSafeInteger(value) && (value as number) > 0;
const isMs = (value: unknown) => Number.isSafeInteger(value) && (value as number) >= 0;
const MILLISECONDS = [isMs, 'a whole number of milliseconds'] as const;

const RULES: {
  readonly [Name in keyof Omit<AcpOptions, 'mcpServers'>]: readonly [holds: (value: unknown) => boolean, must: string];
} = {
  agent: [isText, 'a non-empty string'],
  mode: [isText, 'a non-empty string'],
  config: [
    (value) => isObject(value) && Object.values(value).every((one) => isText(one) || typeof one === 'boolean'),
    'an object of strings and booleans',
  ],
  directories: [
    (value) => Array.isArray(value) && value.every((one) => isText(one) && isAbsolute(one)),
    'a list of absolute paths',
  ],
  auth: [isText, 'a non-empty string'],
  window: [isCount, 'a whole number of tokens'],
  noTools: [
    (value) => isObject(value) && isText(value.version) && isText(value.mode) && Object.keys(value).length === 2,
    'an object with "version" and "mode"',
  ],
  openMs: MILLISECONDS,
  silentMs: MILLISECONDS,
  quietMs: MILLISECONDS,
  lateMs: MILLISECONDS,
  cancelGraceMs: MILLISECONDS,
};

/** Fills in the defaults. Throws `invalid` that names the option and what it may be. */
export function parseAcpOptions(input: Readonly<Record<string, unknown>> = {}): AcpOptions {
  const { mcpServers = [], ...plain } = input;
  for (const [name, value] of Object.entries(plain)) {
    if (!Object.hasOwn(RULES, name))
      throw invalid(`"${name}" is not an option; the options are ${Object.keys(ACP_DEFAULTS).join(', ')}`);
    const [holds, must] = RULES[name as keyof typeof RULES];
    const nullable = ACP_DEFAULTS[name as keyof AcpOptions] === null;
    if (!(value === null && nullable) && !holds(value)) throw invalid(`"${name}" must be ${must}, not ${shown(value)}`);
  }
  return { ...ACP_DEFAULTS, ...plain, mcpServers: parseMcpServers(mcpServers, 'mcpServers', invalid) };
}

function invalid(what: string): ThroughlineError {
  return new ThroughlineError('invalid', `Options of an ACP agent: ${what}.`, { hint: 'See docs/acp.md.' });
}
