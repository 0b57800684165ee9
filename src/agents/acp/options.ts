import { isAbsolute } from 'node:path';
import { isObject } from '../../core/content.ts';
import { ThroughlineError } from '../../core/errors.ts';
import { shown } from '../../core/shown.ts';
import { type McpServer, parseMcpServers } from '../shared/mcp-servers.ts';

/** What the settings may say of an agent that speaks the protocol. Applied to every session, and again after every restore. */
export interface AcpOptions {
  /** Which of the agents known by name it is; null: the one that it is called, if there is one. */
  readonly agent: string | null;
  /** The mode of its sessions; null: the agent's own choice. */
  readonly mode: string | null;
  /** Config options by their id. */
  readonly config: Readonly<Record<string, string | boolean>>;
  readonly mcpServers: readonly McpServer[];
  /** Further directories, whole paths, in which it may act. */
  readonly directories: readonly string[];
  /** The way to log in that is asked for before a session is opened; null: none. */
  readonly auth: string | null;
  /** The model's window in tokens; null: what the agent says. */
  readonly window: number | null;
  /** A mode in which no tool can run, shown on this very version by whoever writes it here; null: none is known. */
  readonly noTools: { readonly version: string; readonly mode: string } | null;
  /** How long an agent may take to answer when a session is opened. */
  readonly openMs: number;
  /** After a load, so long without a word counts as its end. Only waited where the repeated history is not complete. */
  readonly quietMs: number;
  /** All that waiting together. */
  readonly lateMs: number;
  /** How long it may take to obey a cancel before it is killed. */
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
  agent: [isText, 'a text'],
  mode: [isText, 'a text'],
  config: [
    (value) => isObject(value) && Object.values(value).every((one) => isText(one) || typeof one === 'boolean'),
    'an object of texts and truth values',
  ],
  directories: [
    (value) => Array.isArray(value) && value.every((one) => isText(one) && isAbsolute(one)),
    'a list of whole paths',
  ],
  auth: [isText, 'a text'],
  window: [isCount, 'a whole number of tokens'],
  noTools: [
    (value) => isObject(value) && isText(value.version) && isText(value.mode) && Object.keys(value).length === 2,
    'an object with "version" and "mode"',
  ],
  openMs: MILLISECONDS,
  quietMs: MILLISECONDS,
  lateMs: MILLISECONDS,
  cancelGraceMs: MILLISECONDS,
};

/** Fills in the defaults. Throws `invalid` that names the option and what it may be. */
export function parseAcpOptions(input: Readonly<Record<string, unknown>> = {}): AcpOptions {
  const { mcpServers = [], ...plain } = input;
  for (const [name, value] of Object.entries(plain)) {
    if (!Object.hasOwn(RULES, name))
      throw invalid(`"${name}" is not known; known are ${Object.keys(ACP_DEFAULTS).join(', ')}`);
    const [holds, must] = RULES[name as keyof typeof RULES];
    const nullable = ACP_DEFAULTS[name as keyof AcpOptions] === null;
    if (!(value === null && nullable) && !holds(value)) throw invalid(`"${name}" must be ${must}, not ${shown(value)}`);
  }
  return { ...ACP_DEFAULTS, ...plain, mcpServers: parseMcpServers(mcpServers, 'mcpServers', invalid) };
}

function invalid(what: string): ThroughlineError {
  return new ThroughlineError('invalid', `Options of an ACP agent: ${what}.`, { hint: 'See docs/acp.md.' });
}
