import type { Command } from 'commander';
import type { ThroughlineError } from '../../core/errors.ts';
import type { ApiKey } from '../../core/key.ts';
import type { NativeSession } from '../../ports/agent.ts';
import type { DemoParts, DemoRequest } from '../../ports/demo.ts';
import type { Doctor } from '../../ports/doctor.ts';
import type { Engine } from '../../ports/engine.ts';
import type { ServeRequest, Serving, SignInLink } from '../../ports/server.ts';
import type { AddOptions, Tasks } from '../../ports/tasks.ts';
import type { Output } from './output.ts';

/** Options that every command takes. */
export interface GlobalOptions {
  readonly home?: string;
  readonly config?: string;
  /** Left out: `local`, or of a server whoever its key stands for. */
  readonly as?: string;
  readonly server?: string;
  readonly embedded?: boolean;
  readonly json?: boolean;
  readonly quiet?: boolean;
}

export interface WhichEngine extends Pick<GlobalOptions, 'home' | 'config' | 'as' | 'server' | 'embedded'> {
  /** Told that what was accepted waits for the storage, and why. */
  readonly onTrouble: (trouble: ThroughlineError) => void;
}

/** Where an engine comes from: `main.ts` knows, this face does not. */
export interface Parts {
  /** Through a server that is named or found, else embedded. */
  open(options: WhichEngine): Promise<Engine>;
  /** Brings an agent's program into the data home. `not_found`: there is no such agent. */
  install(request: InstallRequest): Promise<InstallResult>;
  /** Starts the server of a data home. Throws `refused`, or `conflict` when one is running already. */
  serve(request: ServeRequest): Promise<Serving>;
  /** A link that signs a browser in at the server that runs. Throws `unreachable` when none does. */
  link(options: Pick<GlobalOptions, 'home' | 'config' | 'as' | 'server' | 'embedded'>): Promise<SignInLink>;
  /** The keys to that server. */
  keys(options: Pick<GlobalOptions, 'home' | 'config' | 'as'>): Promise<KeyDesk>;
  /** Tasks of a data home, worked on by its server when one runs, else here; and how to read a file of them. */
  tasks(options: WhichEngine): Promise<TaskDesk>;
  /** Looks for what crashes have left over in a data home. */
  doctor(options: Pick<GlobalOptions, 'home' | 'config' | 'as'>): Promise<Doctor>;
  /** The sessions that an agent itself has of a directory. Throws `agent_unavailable`, or `refused` when it cannot list them. */
  nativeSessions(options: Pick<GlobalOptions, 'home' | 'config'>, agent: string, cwd: string): Promise<NativeSession[]>;
  /** What the demo needs beside an engine: the agent itself, to use without Throughline. Throws `agent_unavailable`. */
  demo(request: DemoRequest): Promise<DemoParts>;
}

export interface InstallRequest {
  /** As a person calls it: `claude`. */
  readonly agent: string;
  /** Null: the one that Throughline is tested with. */
  readonly version: string | null;
  readonly home: string | undefined;
  /** Aborted: stop, and leave everything as it was. */
  readonly signal: AbortSignal;
}

export interface InstallResult {
  readonly folder: string;
  readonly version: string;
  /** False: it was there already. */
  readonly changed: boolean;
}

export interface KeyDesk {
  /** `key` is shown this once, and kept nowhere. */
  create(wanted: Pick<ApiKey, 'name' | 'scopes' | 'expiresAt'>): Promise<{ key: string; made: ApiKey }>;
  list(): Promise<ApiKey[]>;
  revoke(id: string): Promise<ApiKey>;
  close(): Promise<void>;
}

export interface TaskDesk {
  readonly tasks: Tasks;
  /** A server works on them, and goes on when this process ends. */
  readonly served: boolean;
  readonly engine: Engine;
  /** Throws `invalid` with the line for what is no YAML. */
  readFile(path: string): { readonly plan: unknown } & Required<Pick<AddOptions, 'base' | 'locate'>>;
}

/** One run of the command line, as a command sees it. */
export interface Cli {
  readonly parts: Parts;
  readonly output: Output;
  readonly options: GlobalOptions;
  readonly env: NodeJS.ProcessEnv;
  /** Opens an engine for the work and closes it afterwards, whatever happens. The work's number is the exit code. */
  withEngine(work: (engine: Engine) => Promise<number>): Promise<void>;
  /** The same for tasks. */
  withTasks(work: (desk: TaskDesk) => Promise<number>): Promise<void>;
  /** For a command that opens no engine, or its own. */
  exitWith(code: number): void;
}

/** A file in `commands/`: adds arguments, options, help and the action to its command. Loaded only when it is used. */
export interface CommandModule {
  define(command: Command, cli: Cli): void;
}
