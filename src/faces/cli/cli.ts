import type { Command } from 'commander';
import type { Engine } from '../../ports/engine.ts';
import type { DemoParts } from './demo/parts.ts';
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
  /** What the demo needs beside an engine: a scripted agent to use without Throughline. */
  demo(home: string): Promise<DemoParts>;
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
