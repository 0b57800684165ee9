import type { ACP_OPTIONS } from './agents/acp/options.ts';
import type { CLAUDE_OPTIONS } from './agents/claude/settings.ts';
import type { SCRIPTED_OPTIONS } from './agents/scripted/options.ts';
import { type ComposeOptions, compose } from './compose.ts';
import { connectTo, restOf, type ServerOptions, tasksOf } from './connect.ts';
import { ThroughlineError } from './core/errors.ts';
import { checkBoolean, checkOptions, given, type OptionNames, type OrUndefined } from './core/input/arguments.ts';
import type { Input } from './core/input/schema.ts';
import type { settingsWith } from './core/input/settings.ts';
import { checkOnPermission, type OnPermission } from './library/answering.ts';
import { ThroughlineClient as Throughline } from './library/client.ts';
import { liveStreams } from './library/live.ts';
import { storeTrackers } from './library/tracker/tracker.ts';

/** The options of every adapter. */
interface OptionsByAdapter {
  readonly scripted: typeof SCRIPTED_OPTIONS;
  readonly 'claude-sdk': typeof CLAUDE_OPTIONS;
  readonly 'claude-cli': typeof CLAUDE_OPTIONS;
  readonly acp: typeof ACP_OPTIONS;
}

/**
 * The content of `throughline.config.json`, also as `open({ settings })`. Everything is optional. A misspelt name does not compile,
 * and is refused at run time.
 *
 * @example
 * import type { Settings } from 'throughline';
 *
 * const settings: Settings = {
 *   agents: { claude: { adapter: 'claude-sdk', model: 'sonnet', options: { permissionMode: 'acceptEdits' } } },
 *   limits: { ownerPerDay: '5 USD' },
 * };
 */
export interface Settings extends Input<ReturnType<typeof settingsWith<OptionsByAdapter>>> {}

/**
 * The settings of one agent; `adapter` says which `options` it has.
 *
 * @example
 * import type { AgentSettings } from 'throughline';
 *
 * const codex: AgentSettings = { adapter: 'acp', options: { mode: 'read-only' } };
 */
export type AgentSettings = NonNullable<Settings['agents']>[string];

/**
 * Without `server`: everything runs in this process. With `server`: that server does the work, with its own settings.
 *
 * @example
 * import { type OpenOptions, open } from 'throughline';
 *
 * const options: OpenOptions = { home: './data', takeUp: false, onPermission: () => 'deny' };
 * await using tl = await open(options);
 */
export type OpenOptions = Omit<ComposeOptions, 'health' | 'looks' | 'agents' | 'settings'> &
  OrUndefined<Partial<Omit<ServerOptions, 'onAway'>>> & {
    /** Settings as a value, instead of any file. */
    readonly settings?: Settings | undefined;
    /** Answers the questions of agents. Left out: they are denied at once, unless `permissions` or the settings say "ask". */
    readonly onPermission?: OnPermission | undefined;
    /**
     * Whether this process also runs what other processes of the data home have left: accepted turns that nobody has taken within a
     * second, and tasks. Left out: yes.
     */
    readonly takeUp?: boolean | undefined;
  };

const OPEN_OPTIONS: OptionNames<OpenOptions> = {
  home: true,
  config: true,
  settings: true,
  store: true,
  owner: true,
  engine: true,
  credentials: true,
  onBug: true,
  onTrouble: true,
  telemetry: true,
  permissions: true,
  onPermission: true,
  server: true,
  token: true,
  plainHttp: true,
  takeUp: true,
};

/**
 * Opens Throughline. Embedded in this process: its store, its agents, and a worker for the conversations used here and for what dead
 * processes left. With `server`: through that server, which has them.
 *
 * @example
 * import { open } from 'throughline';
 *
 * await using tl = await open();
 * const { reply } = await tl.conversation('ticket-4711').ask('Which codewords have you seen?');
 */
export async function open(options: OpenOptions = {}): Promise<Throughline> {
  checkOptions(options, OPEN_OPTIONS, 'open()');
  checkOnPermission(options.onPermission);
  const { server, token, plainHttp, onPermission, takeUp, ...own } = options;
  for (const [name, value] of Object.entries({ takeUp, plainHttp })) {
    if (value !== undefined) checkBoolean(value, name);
  }
  const [unused] = server === undefined ? Object.keys(given({ token, plainHttp })) : [];
  if (unused !== undefined)
    throw new ThroughlineError('refused', `"${unused}" needs "server".`, {
      hint: 'Without a server, everything runs in this process, and needs no token.',
    });
  if (server !== undefined) return openServer({ ...own, ...given({ token, plainHttp, takeUp }), server }, onPermission);
  const claims = takeUp === false ? 'own' : 'left';
  const { engine, parts, tasks } = await compose({ ...(own as ComposeOptions), engine: { claims, ...own.engine } });
  const board = await tasks();
  return new Throughline(engine, board, storeTrackers(parts), liveStreams(engine, board), null, onPermission);
}

/** The server has its own settings, so options about them are refused. */
async function openServer(
  { server, token, plainHttp, home, owner, ...rest }: ServerOptions,
  onPermission: OnPermission | undefined,
): Promise<Throughline> {
  const [ignored] = Object.entries(rest).find(([, value]) => value !== undefined) ?? [];
  if (ignored !== undefined) {
    throw new ThroughlineError(
      'refused',
      `"${ignored}" cannot be used together with "server": the server has its own.`,
    );
  }
  const engine = await connectTo({ server, token, plainHttp, home, owner });
  const [tasks, { trackers, lives, server: itself }] = [await tasksOf(engine), await restOf(engine)];
  return new Throughline(engine, tasks, trackers, lives, itself, onPermission);
}

export { ERROR_CODES, ThroughlineError } from './core/errors.ts';
export type { Credentials, CredentialsFor, CredentialsRequest } from './core/sandbox/credentials.ts';
export { TurnError } from './library/answer.ts';
export type { ThroughlineClient as Throughline } from './library/client.ts';
export type * from './library/public.ts';
export { statusOf } from './wire/problem-codes.ts';
