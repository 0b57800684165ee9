import { asSentence, ThroughlineError } from '../errors.ts';
import { type Budget, NO_BUDGET, parseBudget } from '../limits/budget.ts';
import { isTimeLimit, TIME_LIMITS, type TimeOverride } from '../limits/time-limits.ts';
import { parseRestore, type RestoreOverride } from '../restore/restore-settings.ts';
import { isObject } from '../turn/content.ts';
import { isPermissionMode, type PermissionMode } from '../turn/turn.ts';
import { shown } from './arguments.ts';
import { checkKey } from './names.ts';
import { findUnpaired, unpairedIn } from './well-formed.ts';

/** The content of `throughline.config.json`. Everything is optional. An unknown setting is refused, never ignored (R7). */
export interface Settings {
  /** `sqlite:PATH`; left out: `throughline.db` in the data home. */
  readonly store?: string;
  /** The agent for a first turn that names none. */
  readonly defaultAgent?: string;
  readonly agents: Readonly<Record<string, AgentSettings>>;
  readonly restore: RestoreOverride;
  readonly sandbox: { readonly root?: string };
  readonly lock: LockSettings;
  readonly permissions: PermissionSettings;
  readonly limits: LimitSettings;
  /** `parallel`: how many tasks of a data home may run at once. */
  readonly tasks: { readonly parallel?: number };
  /** How many turns may run at once in a process, and how many of them for one owner. Each has a default. */
  readonly turns: { readonly parallel?: number; readonly perOwner?: number };
}

/** How long to wait for a session that another program is using. Each setting has a default. */
export interface LockSettings {
  /** The first wait; each is twice as long as the one before. */
  readonly firstMs?: number;
  readonly longestMs?: number;
  /** All waits of a turn together. */
  readonly totalMs?: number;
}

/** What happens when an agent asks for permission and the turn does not say it. */
export interface PermissionSettings {
  /** `ask`: wait for an answer. `deny`: at once. Left out: a server asks; a program that embeds Throughline denies. */
  readonly mode?: PermissionMode;
  /** How long an answer is waited for before the question is denied. Default: 600. */
  readonly waitSeconds?: number;
}

/** How long a turn may take, and how much may be spent on a day (UTC). */
export type LimitSettings = TimeOverride & {
  readonly conversationPerDay?: Budget;
  readonly ownerPerDay?: Budget;
  /** Owners with another limit, by name. */
  readonly owners?: Readonly<Record<string, Budget>>;
};

const SPENDING = ['conversationPerDay', 'ownerPerDay', 'owners'];
const LOCK = ['firstMs', 'longestMs', 'totalMs'] as const;

export const ADAPTERS = ['scripted', 'claude-sdk', 'claude-cli', 'acp'] as const;
export type AdapterName = (typeof ADAPTERS)[number];

export interface AgentSettings {
  readonly adapter: AdapterName;
  /** The program to start and its first arguments; left out: it is looked for. */
  readonly command?: readonly string[];
  /** A folder whose node_modules holds the agent; left out: it is looked for. */
  readonly package?: string;
  /** Left out: the one that the agent chooses. */
  readonly model?: string;
  /** Added to the allowlisted environment that the agent starts with. */
  readonly env: Readonly<Record<string, string>>;
  /** How long its turns may take, and how long it may be silent; left out: as `limits` says. */
  readonly limits?: TimeOverride;
  /** Options of this adapter, which checks them itself. */
  readonly options: Readonly<Record<string, unknown>>;
}

const KNOWN = [
  '$schema',
  'store',
  'defaultAgent',
  'agents',
  'restore',
  'sandbox',
  'lock',
  'permissions',
  'limits',
  'tasks',
  'turns',
];
const KNOWN_OF_AGENT = ['adapter', 'env', 'limits', 'options'];
const KNOWN_OF_PROGRAM = ['adapter', 'command', 'package', 'model', 'env', 'limits', 'options'];
const KNOWN_BY_ADAPTER: Record<AdapterName, readonly string[]> = {
  scripted: KNOWN_OF_AGENT,
  'claude-sdk': KNOWN_OF_PROGRAM,
  'claude-cli': KNOWN_OF_PROGRAM,
  acp: KNOWN_OF_PROGRAM,
};

/** Checks settings from a file or a caller. Throws `invalid`, and says which setting is wrong. */
export function parseSettings(input: unknown): Settings {
  if (!isObject(input)) throw fault('the settings must be an object');
  const unpaired = findUnpaired(input);
  if (unpaired !== null) throw fault(unpairedIn(`"${unpaired.path}"`, unpaired));
  onlyKnown(input, KNOWN, '');
  const agents = object(input.agents, 'agents');
  const sandbox = object(input.sandbox, 'sandbox', ['root']);
  const { store, defaultAgent } = input;
  const parsed = Object.fromEntries(Object.entries(agents).map(([name, value]) => [name, parseAgent(name, value)]));
  if (defaultAgent !== undefined && !Object.hasOwn(parsed, text(defaultAgent, 'defaultAgent'))) {
    throw fault(`"defaultAgent" names "${defaultAgent}", which is not among the agents`);
  }
  return {
    ...(store === undefined ? {} : { store: text(store, 'store') }),
    ...(defaultAgent === undefined ? {} : { defaultAgent: text(defaultAgent, 'defaultAgent') }),
    agents: parsed,
    restore: parseRestore(input.restore),
    sandbox: sandbox.root === undefined ? {} : { root: text(sandbox.root, 'sandbox.root') },
    lock: parseLock(object(input.lock, 'lock', LOCK)),
    limits: parseLimits(object(input.limits, 'limits', [...TIME_LIMITS, ...SPENDING])),
    permissions: parsePermissions(object(input.permissions, 'permissions', ['mode', 'waitSeconds'])),
    tasks: checkCounts(object(input.tasks, 'tasks', ['parallel']), 'tasks'),
    turns: checkCounts(object(input.turns, 'turns', ['parallel', 'perOwner']), 'turns'),
  };
}

function parseLock(input: Record<string, unknown>): LockSettings {
  for (const [name, value] of Object.entries(input)) {
    if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < 0) {
      throw fault(`"lock.${name}" must be a whole number of milliseconds, not ${shown(value)}`);
    }
  }
  return input;
}

function parsePermissions(input: Record<string, unknown>): PermissionSettings {
  const { mode, waitSeconds } = input;
  if (mode !== undefined && !isPermissionMode(mode)) {
    throw fault(`"permissions.mode" must be "ask" or "deny", not ${shown(mode)}`);
  }
  if (waitSeconds !== undefined) seconds(waitSeconds, 'permissions.waitSeconds');
  return input;
}

function parseLimits({ conversationPerDay, ownerPerDay, owners, ...times }: Record<string, unknown>): LimitSettings {
  const others = Object.entries(object(owners, 'limits.owners'));
  return {
    ...checkTimes(times, 'limits'),
    ...(conversationPerDay === undefined
      ? {}
      : { conversationPerDay: perDay(conversationPerDay, 'conversationPerDay') }),
    ...(ownerPerDay === undefined ? {} : { ownerPerDay: perDay(ownerPerDay, 'ownerPerDay') }),
    ...(others.length === 0
      ? {}
      : { owners: Object.fromEntries(others.map(([name, value]) => [name, perDay(value, `owners.${name}`)])) }),
  };
}

function checkTimes(limits: Record<string, unknown>, where: string): TimeOverride {
  for (const [name, value] of Object.entries(limits)) {
    if (isTimeLimit(value)) continue;
    throw fault(`"${where}.${name}" must be a number of seconds above 0, or null for none, not ${shown(value)}`);
  }
  return limits;
}

function perDay(value: unknown, name: string): Budget {
  const budget = value === null ? NO_BUDGET : parseBudget(value);
  if (budget !== null) return budget;
  throw fault(
    `"limits.${name}" must be an amount such as "5 USD" or "200k tokens", or null for none, not ${shown(value)}`,
  );
}

function seconds(value: unknown, where: string): number {
  if (typeof value === 'number' && Number.isFinite(value) && value >= 0) return value;
  throw fault(`"${where}" must be a number of seconds, 0 or more, not ${shown(value)}`);
}

function checkCounts(counts: Record<string, unknown>, where: string): Record<string, number> {
  for (const [name, value] of Object.entries(counts)) {
    if (Number.isSafeInteger(value) && (value as number) >= 1) continue;
    throw fault(`"${where}.${name}" must be a whole number, 1 or more, not ${shown(value)}`);
  }
  return counts as Record<string, number>;
}

function parseAgent(name: string, input: unknown): AgentSettings {
  const at = `agents.${name}`;
  checkAgentName(name);
  if (!isObject(input)) throw fault(`"${at}" must be an object`);
  const adapter = input.adapter as AdapterName;
  if (!(ADAPTERS as readonly unknown[]).includes(adapter)) {
    throw fault(`"${at}.adapter" must be one of ${ADAPTERS.join(', ')}, not ${shown(adapter)}`);
  }
  onlyKnown(input, KNOWN_BY_ADAPTER[adapter], `${at}.`);
  const env = object(input.env, `${at}.env`);
  if (!Object.values(env).every((value) => typeof value === 'string')) {
    throw fault(`"${at}.env" must be an object whose values are texts`);
  }
  const { command, package: folder, model } = input;
  return {
    adapter,
    ...(command === undefined ? {} : { command: words(command, `${at}.command`) }),
    ...(folder === undefined ? {} : { package: text(folder, `${at}.package`) }),
    ...(model === undefined ? {} : { model: text(model, `${at}.model`) }),
    env: env as Record<string, string>,
    ...(input.limits === undefined
      ? {}
      : { limits: checkTimes(object(input.limits, `${at}.limits`, TIME_LIMITS), `${at}.limits`) }),
    options: object(input.options, `${at}.options`),
  };
}

function words(value: unknown, where: string): readonly string[] {
  const [first] = Array.isArray(value) ? value : [];
  if (Array.isArray(value) && first !== '' && value.length > 0 && value.every((one) => typeof one === 'string')) {
    return value;
  }
  throw fault(`"${where}" must be a list of texts: the program, then its arguments`);
}

/** Left out, or null: an empty object. */
function object(value: unknown, where: string, known?: readonly string[]): Record<string, unknown> {
  const given = value ?? {};
  if (!isObject(given)) throw fault(`"${where}" must be an object`);
  if (known !== undefined) onlyKnown(given, known, `${where}.`);
  return given;
}

function onlyKnown(value: Record<string, unknown>, known: readonly string[], prefix: string): void {
  const unknown = Object.keys(value).find((name) => !known.includes(name));
  if (unknown !== undefined) throw fault(`unknown setting "${prefix}${unknown}"; known: ${known.join(', ')}`);
}

function text(value: unknown, where: string): string {
  if (typeof value === 'string' && value !== '') return value;
  throw fault(`"${where}" must be a non-empty text`);
}

function checkAgentName(name: string): void {
  try {
    checkKey(name, 'name');
  } catch (error) {
    throw fault(`the agent ${shown(name)} cannot have this name. ${(error as ThroughlineError).message}`);
  }
}

function fault(what: string): ThroughlineError {
  return new ThroughlineError('invalid', asSentence(`Settings: ${what}`), {
    hint: 'All settings are described in throughline.schema.json.',
  });
}
