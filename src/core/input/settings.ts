import { ThroughlineError } from '../errors.ts';
import { BUDGET } from '../limits/budget.ts';
import { TIMES } from '../limits/time-limits.ts';
import { RESTORE } from '../restore/restore-settings.ts';
import { CREDENTIALS } from '../sandbox/credentials.ts';
import { SANDBOX } from '../sandbox/sandbox-settings.ts';
import { isObject } from '../turn/content.ts';
import { PERMISSION_MODES } from '../turn/turn.ts';
import { shown } from './arguments.ts';
import { checkKey } from './names.ts';
import {
  about,
  byName,
  command,
  invalidValue,
  kinds,
  matching,
  type Output,
  object,
  oneOf,
  required,
  type Schema,
  text,
  value,
  whole,
} from './schema.ts';
import { findUnpaired, unpairedIn } from './well-formed.ts';

/*
 * The content of `throughline.config.json`. Everything is optional. An unknown setting is refused, never ignored (R7). The options of
 * an agent are its adapter's: `src/index.ts` has the whole as a type, and `scripts/settings-schema.ts` as JSON Schema.
 */

export const ADAPTERS = ['scripted', 'claude-sdk', 'claude-cli', 'acp'] as const;
export type AdapterName = (typeof ADAPTERS)[number];
type OptionsByAdapter = Readonly<Record<AdapterName, Schema<never, object>>>;

const ms = whole({ least: 0, of: ' of milliseconds' });
const count = whole({ least: 1 });

const LIMITS = object({
  ...TIMES,
  conversationPerDay: about(
    'How much may be spent in one conversation on a day (UTC): "5 USD", "200k tokens". Default: no limit.',
    BUDGET,
  ),
  ownerPerDay: about(
    'How much an owner may spend on a day (UTC), in all conversations together. Default: no limit.',
    BUDGET,
  ),
  owners: about('Owners with another limit than ownerPerDay, by name.', byName(BUDGET)),
});
const LOCK = object({
  firstMs: about('The first wait; each is twice the one before. Default 100.', ms),
  longestMs: about('The longest single wait. Default 5000.', ms),
  totalMs: about('All waits of a turn together. Default 30000.', ms),
});
const PERMISSIONS = object({
  mode: about(
    'ask: wait for an answer. deny: at once. Left out: a server asks; a program that embeds Throughline denies.',
    oneOf(PERMISSION_MODES),
  ),
  waitSeconds: about(
    'How long to wait for an answer before the question is denied. Default 600.',
    value<number>(
      (one) => typeof one === 'number' && Number.isFinite(one) && one >= 0,
      'a number of seconds, 0 or more',
      { type: 'number', minimum: 0 },
    ),
  ),
});
const TURNS = object({
  parallel: about('For all owners together. Default: one for every 512 MiB of memory, from 4 to 64.', count),
  perOwner: about(
    'For one owner; as many more may wait for the answer to a permission question. Default: three quarters of parallel.',
    count,
  ),
});

const ENV = about(
  'Added to the allowlisted environment that the agent starts with.',
  value<Readonly<Record<string, string>>>(
    (env) => isObject(env) && Object.values(env).every((one) => typeof one === 'string'),
    'an object whose values are texts',
    { type: 'object', additionalProperties: { type: 'string' } },
    { hidden: true },
  ),
);
const COMMAND = about('The program to start and its first arguments. Left out: it is looked for.', command);
const FOLDER = about(
  "A folder whose node_modules holds the agent. Relative paths start at this file's directory.",
  text,
);
const MODEL = about('Left out: the one that the agent chooses.', text);
const AGENT_TIMES = about(
  'How long a turn of this agent may take, in seconds; null: no limit. Left out: as limits of the settings.',
  object(TIMES),
);

const STORE = about(
  "Where conversations are stored. Relative paths start at this file's directory. Left out: throughline.db in the data home.",
  matching(
    /^(sqlite:.+|postgres(ql)?:\/\/.+)/,
    '"sqlite:PATH" or "postgres://USER@HOST/DATABASE"',
    { hidden: true }, // it may contain a password
  ),
);

/** The address of a store that is not from a settings file. `name`: where it was given. Throws `invalid`, without the address. */
export function parseStoreAddress(address: unknown, name: string): string {
  return STORE.read(address, [name], invalidValue());
}

/** The address without a password, for texts and for commands that people repeat. */
export function withoutPassword(address: string): string {
  if (address.startsWith('sqlite:')) return address;
  const url = URL.parse(address);
  if (url === null) return 'postgres://USER@HOST/DATABASE';
  url.password = '';
  for (const name of [...url.searchParams.keys()]) if (/password/i.test(name)) url.searchParams.delete(name);
  return url.href;
}

const DEFAULT_AGENT = about(
  'The agent for a first turn that names none. Left out: the only one, if there is only one.',
  text,
);

const named = <const Name extends AdapterName>(name: Name) => required(oneOf([name]));

/** The settings, when the options of each adapter are these. */
export function settingsWith<O extends OptionsByAdapter>(options: O) {
  const optionsOf = <A extends AdapterName>(adapter: A): O[A] => options[adapter];
  const common = { env: ENV, credentials: CREDENTIALS, limits: AGENT_TIMES };
  const program = { command: COMMAND, package: FOLDER, model: MODEL, ...common };
  return object({
    $schema: value<string>(() => true, 'a text', { type: 'string' }),
    store: STORE,
    defaultAgent: DEFAULT_AGENT,
    agents: about(
      'Agents by the name that turns use.',
      byName(
        kinds('adapter', {
          scripted: object({ adapter: named('scripted'), ...common, options: optionsOf('scripted') }),
          'claude-sdk': object({ adapter: named('claude-sdk'), ...program, options: optionsOf('claude-sdk') }),
          'claude-cli': object({ adapter: named('claude-cli'), ...program, options: optionsOf('claude-cli') }),
          acp: object({ adapter: named('acp'), ...program, options: optionsOf('acp') }),
        }),
      ),
    ),
    restore: RESTORE,
    lock: about('How long a session that another program holds is waited for.', LOCK),
    limits: about(
      'How long a turn may take, in seconds, and how much may be spent; null: no limit. The times of an agent or a turn come first.',
      LIMITS,
    ),
    permissions: about('What happens when an agent asks for permission, unless the turn sets it.', PERMISSIONS),
    sandbox: about('Where agents act, and how far they are isolated.', SANDBOX),
    tasks: object({ parallel: about('How many tasks of a data home may run at once. Default 4.', count) }),
    turns: about('How many turns may run at once in a process. Further ones wait for a slot.', TURNS),
  });
}

/** The adapter checks its options when it is loaded. */
const UNCHECKED = value<Readonly<Record<string, unknown>>>(isObject, 'an object', { type: 'object' });
const SETTINGS = settingsWith({
  scripted: UNCHECKED,
  'claude-sdk': UNCHECKED,
  'claude-cli': UNCHECKED,
  acp: UNCHECKED,
});
type Read = Output<typeof SETTINGS>;

/** Settings that were checked. What is left out of an object has its default. */
export type Settings = Pick<Read, 'store' | 'defaultAgent'> & {
  readonly [Name in keyof Omit<Read, '$schema' | 'store' | 'defaultAgent' | 'agents'>]-?: NonNullable<Read[Name]>;
} & { readonly agents: Readonly<Record<string, AgentSettings>> };

export type LockSettings = Settings['lock'];

type ReadAgent = NonNullable<Read['agents']>[string];
type ProgramSettings = Extract<ReadAgent, { readonly adapter: 'acp' }>;

/** The settings of one agent, for any adapter. */
export type AgentSettings = Omit<ProgramSettings, 'adapter' | 'env' | 'options'> & {
  readonly adapter: AdapterName;
  readonly env: Readonly<Record<string, string>>;
  /** Options of this adapter, which checks them itself. */
  readonly options: Readonly<Record<string, unknown>>;
  /** What is wrong with the settings of this agent, which then have nothing but the adapter. Left out: nothing. */
  readonly wrong?: ThroughlineError;
};

const HINT = 'All settings are described in throughline.schema.json.';
const report = invalidValue({ prefix: 'Settings: ', hint: HINT });

/** Checks settings from a file or a caller. Throws `invalid`, and says which setting is wrong. */
export function parseSettings(input: unknown): Settings {
  if (!isObject(input)) throw report([], { says: 'the settings must be an object' });
  const unpaired = findUnpaired(input);
  if (unpaired !== null) throw report([], { says: unpairedIn(`"${unpaired.path}"`, unpaired) });
  const { $schema: _, agents = {}, defaultAgent, ...rest } = SETTINGS.read(input, [], report);
  for (const name of Object.keys(agents)) checkAgentName(name);
  if (defaultAgent !== undefined && !Object.hasOwn(agents, defaultAgent)) {
    throw report([], { says: `"defaultAgent" names "${defaultAgent}", which is not among the agents` });
  }
  const complete = Object.entries(agents).map(([name, agent]) => [name, { env: {}, options: {}, ...agent }] as const);
  const defaults = { restore: {}, sandbox: {}, lock: {}, permissions: {}, limits: {}, tasks: {}, turns: {} };
  return {
    ...defaults,
    ...rest,
    ...(defaultAgent === undefined ? {} : { defaultAgent }),
    agents: Object.fromEntries(complete),
  };
}

/**
 * The same for settings from a file. There, a mistake in the settings of one agent concerns only those who use it, if its adapter is right:
 * `wrong` of that agent.
 */
export function parseSettingsOfFile(input: unknown): Settings {
  if (!isObject(input) || !isObject(input.agents)) return parseSettings(input);
  const given = Object.entries(input.agents);
  const wrong = new Map(given.map(([name, agent]) => [name, faultIn(name, agent)]));
  const sound = given.map(([name, agent]) => [name, wrong.get(name) ? { adapter: adapterIn(agent) } : agent]);
  const { agents, ...rest } = parseSettings({ ...input, agents: Object.fromEntries(sound) });
  const marked = Object.entries(agents).map(([name, agent]): [string, AgentSettings] => {
    const fault = wrong.get(name);
    return [name, fault ? { ...agent, wrong: fault } : agent];
  });
  return { ...rest, agents: Object.fromEntries(marked) };
}

/** Null: nothing is wrong, or its adapter is. */
function faultIn(name: string, agent: unknown): ThroughlineError | null {
  if (adapterIn(agent) === undefined) return null;
  try {
    parseSettings({ agents: { [name]: agent } });
    return null;
  } catch (error) {
    if (error instanceof ThroughlineError) return error;
    throw error;
  }
}

function adapterIn(agent: unknown): AdapterName | undefined {
  return isObject(agent) ? ADAPTERS.find((one) => one === agent.adapter) : undefined;
}

/** Checks the options of an agent, as its adapter knows them. Throws `invalid`, and says which option is wrong. */
export function parseOptions<Out>(schema: Schema<never, Out>, agent: string, options: unknown): Out {
  return schema.read(options ?? {}, ['agents', agent, 'options'], report);
}

function checkAgentName(name: string): void {
  try {
    checkKey(name, 'name');
  } catch (error) {
    const { message } = error as ThroughlineError;
    throw report([], { says: `the agent ${shown(name)} cannot have this name. ${message}` });
  }
}
