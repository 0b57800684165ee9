import type { Command } from 'commander';
import type { Engine } from '../../ports/engine.ts';
import type { DemoParts, DemoRequest } from './demo/parts.ts';
import type { Output } from './output.ts';

/** Options that every command takes. */
export interface GlobalOptions {
  readonly home?: string;
  readonly config?: string;
  readonly as?: string;
  readonly json?: boolean;
  readonly quiet?: boolean;
}

/** Where an engine comes from: `main.ts` knows, this face does not. */
export interface Parts {
  open(options: Pick<GlobalOptions, 'home' | 'config' | 'as'>): Promise<Engine>;
  /** Brings an agent's program into the data home. `not_found`: there is no such agent. */
  install(request: InstallRequest): Promise<InstallResult>;
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

/** One run of the command line, as a command sees it. */
export interface Cli {
  readonly parts: Parts;
  readonly output: Output;
  readonly options: GlobalOptions;
  readonly env: NodeJS.ProcessEnv;
  /** Opens an engine for the work and closes it afterwards, whatever happens. The work's number is the exit code. */
  withEngine(work: (engine: Engine) => Promise<number>): Promise<void>;
  /** For a command that opens no engine, or its own. */
  exitWith(code: number): void;
}

/** A file in `commands/`: adds arguments, options, help and the action to its command. Loaded only when it is used. */
export interface CommandModule {
  define(command: Command, cli: Cli): void;
}
