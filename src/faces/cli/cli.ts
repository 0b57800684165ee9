import { type Command, Help as CommanderHelp } from 'commander';
import { ThroughlineError } from '../../core/errors.ts';
import type { Name, NameKind } from '../../core/input/names.ts';
import type { ApiKey, PageScope } from '../../core/key.ts';
import type { NativeSession } from '../../ports/agent.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Doctor } from '../../ports/doctor.ts';
import type { Engine } from '../../ports/engine.ts';
import type { DemoParts, DemoRequest, ServeRequest, Serving, SignInLink } from '../../ports/server.ts';
import type {
  BackupMade,
  BackupRequest,
  Restored,
  RestoreRequest,
  StoreCopied,
  StoreCopyRequest,
  StoreReopened,
} from '../../ports/store/backup.ts';
import type { AddOptions, Tasks } from '../../ports/tasks.ts';
import type { Output } from './output.ts';

/** One run of the command line, as a command sees it. */
export interface Cli {
  readonly parts: Parts;
  readonly output: Output;
  readonly options: GlobalOptions;
  readonly clock: Clock;
  /** What this command mostly waits for, as a terminal shows it. */
  readonly waits: string;
  /** Opens an engine for the work and always closes it. The work may return an exit code; left out: 0. */
  withEngine(work: (engine: Engine) => Promise<number | undefined>): Promise<void>;
  /** The same for tasks. */
  withTasks(work: (desk: TaskDesk) => Promise<number | undefined>): Promise<void>;
  /** The same for a command that only looks: data of an older version is not upgraded. */
  lookAt(work: (engine: Engine) => Promise<number | undefined>): Promise<void>;
  lookAtTasks(work: (desk: TaskDesk) => Promise<number | undefined>): Promise<void>;
  /** The global options for a part that only looks. */
  readonly looking: LookOptions;
  /** Gives another command of the program its arguments and options. */
  load(command: Command): Promise<void>;
  /** For a command that opens no engine, or its own. Not called: 0. */
  exitWith(code: number): void;
}

/** A file of `commands/`: adds arguments, options, help and the action to its command. Loaded only when it is used. */
export interface CommandModule {
  define(command: Command, cli: Cli): void;
}

/** Options of every command. */
export interface GlobalOptions {
  readonly home?: string;
  readonly config?: string;
  readonly store?: string;
  /** Left out: `local`, or the owner of the key to the server. */
  readonly as?: string;
  readonly server?: string;
  readonly embedded?: boolean;
  readonly json?: boolean;
  readonly quiet?: boolean;
}

export interface LookOptions extends GlobalOptions {
  /** Data of an older version is shown from a copy, and this is called with a note about it. Left out: the data is upgraded. */
  readonly looks?: (note: string) => void;
}

/** What commands work with. `main.ts` provides it, so that this face imports no implementation. */
export interface Parts {
  /** Opens an engine: that of a server that is named or found, else one in this process. */
  open(options: WhichEngine): Promise<Engine>;
  /** For a conversation at a terminal: the session stays open between turns. */
  chat(options: WhichEngine): Promise<ChatDesk>;
  /** Installs an agent's program in the data home. `not_found`: there is no such agent. */
  install(request: InstallRequest): Promise<InstallResult>;
  /** Starts the server of a data home. Throws `refused`, or `conflict` when it already has one. */
  serve(request: ServeRequest): Promise<Serving>;
  /** A link that signs a browser in at the running server, for the owner of the options. Throws `unreachable` when there is none. */
  link(options: GlobalOptions, scopes: readonly PageScope[] | undefined): Promise<SignInLink>;
  /** The keys to the server of a data home. */
  keys(options: LookOptions): Promise<KeyDesk>;
  /** The tasks of a data home. Its server works on them when one runs, else this process. */
  tasks(options: WhichEngine): Promise<TaskDesk>;
  /** Looks for what crashes have left behind in a data home. */
  doctor(options: LookOptions): Promise<Doctor>;
  /** The agent's own sessions in a directory. Throws `agent_unavailable`, or `refused` when it cannot list them. */
  nativeSessions(options: GlobalOptions, agent: string, cwd: string): Promise<NativeSession[]>;
  /** Writes a backup of the data home, or of the server that is named. Throws `conflict` when the file exists. */
  backup(request: GlobalOptions & BackupRequest): Promise<BackupMade>;
  /** Makes a backup the data of the data home. Throws `conflict` while somebody uses it. */
  restore(request: GlobalOptions & RestoreRequest): Promise<Restored>;
  /** Copies everything from one store to another. Throws `conflict` when the target has other data. */
  copyStore(request: StoreCopyRequest): Promise<StoreCopied>;
  /** Lets a store be used again whose data was copied to another one. Throws `conflict` while it is in use. */
  reopenStore(store: string): Promise<StoreReopened>;
  /**
   * Names of one kind, newest first, for completion and suggestions. Starts, upgrades and probes nothing. Reads them from the server
   * that is named, else from the data home. `withinMs`: a server that takes longer gives none. May throw.
   */
  names(options: GlobalOptions, kind: NameKind, withinMs?: number): Promise<Name[]>;
  /** What `throughline demo` works with. Throws `agent_unavailable`. */
  demo(request: DemoRequest): Promise<DemoParts>;
}

export interface WhichEngine extends LookOptions {
  /** Called while accepted turns wait for the storage, and while the server does not answer. */
  readonly onTrouble: (trouble: ThroughlineError) => void;
}

export interface ChatDesk {
  readonly engine: Engine;
  /** A server runs the turns, and continues when this process ends. */
  readonly served: boolean;
  /** The data home on this machine. It keeps the history of prompts. */
  readonly home: string;
}

interface InstallRequest {
  /** The name that people use: `claude`, `codex`. */
  readonly agent: string;
  /** Null: the version that Throughline is tested with. */
  readonly version: string | null;
  readonly home: string | undefined;
  /** Aborted: stop, and leave everything as it was. */
  readonly signal: AbortSignal;
}

interface InstallResult {
  readonly folder: string;
  readonly version: string;
  /** False: it was installed before. */
  readonly changed: boolean;
}

export interface KeyDesk {
  /** `key` is returned only here; it is not stored. */
  create(wanted: Pick<ApiKey, 'name' | 'scopes' | 'owners' | 'expiresAt'>): Promise<{ key: string; made: ApiKey }>;
  list(): Promise<ApiKey[]>;
  revoke(id: string): Promise<ApiKey>;
  close(): Promise<void>;
}

export interface TaskDesk {
  readonly tasks: Tasks;
  /** A server works on them, and continues when this process ends. */
  readonly served: boolean;
  readonly engine: Engine;
  /** Reads a task file. Throws `invalid` with the line when it is not valid YAML. */
  readFile(path: string): { readonly plan: unknown } & Required<Pick<AddOptions, 'base' | 'locate'>>;
}

/** What `--help` says below the options: how the command behaves, in paragraphs, and commands to copy. */
export interface Help {
  readonly about?: string;
  readonly examples: readonly string[];
}

const SHARED_OPTIONS =
  '"throughline --help" lists the options of all commands: --home, --as, --server, --json and others.';

const HELP = new WeakMap<Command, Help>();

/** Undefined: the command has none. */
export const helpOf = (command: Command): Help | undefined => HELP.get(command);

export function addHelp(command: Command, help: Help): void {
  const { about, examples } = help;
  HELP.set(command, help);
  if (about !== undefined) command.addHelpText('after', () => `\n${wrapped(about, helpWidth())}`);
  // commander lists them only in the help of the program.
  if (command.parent !== null) command.addHelpText('after', () => `\n${wrapped(SHARED_OPTIONS, helpWidth())}`);
  command.addHelpText('after', `\nExamples:\n${examples.map((line) => `  $ ${line}`).join('\n')}`);
}

interface SubcommandHelp extends Help {
  readonly summary: string;
  /** Left out: the summary, as a sentence. */
  readonly description?: string;
  /** It runs when none is named. */
  readonly isDefault?: boolean;
}

/** A command of another one, with its help. */
export function subcommand(parent: Command, name: string, about: SubcommandHelp): Command {
  const { summary, description = asDescription(summary), isDefault = false, ...help } = about;
  const command = parent.command(name, { isDefault }).summary(summary).description(description);
  addHelp(command, help);
  return command;
}

/** A summary as a sentence. */
export function asDescription(summary: string): string {
  return `${summary.charAt(0).toUpperCase()}${summary.slice(1)}.`;
}

const WIDEST_HELP = 100;

/** Longer lines are hard to read. Without a terminal: 80, the default of commander. */
export function helpWidth(): number {
  return Math.min(WIDEST_HELP, process.stdout.columns || 80);
}

/** Wraps each line of the text. A line that begins with a space is left as it is. */
export function wrapped(text: string, columns: number): string {
  const help = new CommanderHelp();
  const lines = text.split('\n');
  return lines.map((line) => (line.startsWith(' ') ? line : help.boxWrap(line, columns))).join('\n');
}

/** For a command that works on this machine: a named server must not be ignored. */
export function notThroughServer(command: string): ThroughlineError {
  return new ThroughlineError('invalid', `"${command}" works on the data home itself, not through a server.`, {
    hint: 'Leave out --server, and run it on the machine that has the data home.',
  });
}

/** Refuses a password in an argument: `postgres://ann:secret@host/database` or `?password=secret`. `otherwise`: one more way to give it. */
export function checkNoPassword(address: string, name: string, otherwise = ''): void {
  if (!/^[a-z]+:\/\/[^/@]*:[^?]*@|[?&]password=/i.test(address)) return;
  throw new ThroughlineError('refused', `Every user of this machine could see the password in ${name}.`, {
    hint: `Leave it out and set PGPASSWORD, or write it into ~/.pgpass${otherwise}.`,
  });
}
