import { CommanderError } from 'commander';
import { type Failure, failureOf, ThroughlineError } from '../../core/errors.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Cli, GlobalOptions, Parts } from './cli.ts';
import { DONE, EXIT } from './exit-codes.ts';
import { Output, type Sink } from './output.ts';
import { createProgram, withInstallVersion, withoutHelpCommand } from './program.ts';

export interface RunOptions {
  readonly parts: Parts;
  readonly version: string;
  readonly stdout: Sink;
  readonly stderr: Sink;
  readonly env: NodeJS.ProcessEnv;
  readonly clock: Clock;
}

/** Runs one command line to its end and resolves with the exit code. Never rejects. Shows a stack only with THROUGHLINE_DEBUG. */
export async function run(argv: readonly string[], options: RunOptions): Promise<number> {
  const { parts, version, stdout, stderr, env, clock } = options;
  const unwritten = watched(stdout);
  stderr.on('error', () => {}); // there is no other place to report it
  const outputFor = ({ json = false, quiet = false }: GlobalOptions) =>
    new Output({ stdout, stderr, json, quiet, color: !env.NO_COLOR && env.TERM !== 'dumb' });
  let output: Output | null = null;
  let exitCode = DONE;
  let help = 'throughline --help';
  const begin = (command: string, globals: GlobalOptions): Cli => {
    help = `throughline ${command} --help`;
    output = outputFor(globals);
    return cliFor({ parts, clock, output, options: globals }, (code) => {
      exitCode = code;
    });
  };
  const program = createProgram({
    version,
    writeOut: (text) => stdout.write(text),
    writeErr: (text) => stderr.write(text),
    begin,
  });
  try {
    await program.parseAsync(withInstallVersion(withoutHelpCommand(argv)), { from: 'user' }).catch((error) => {
      if (!(error instanceof CommanderError && error.exitCode === 0)) throw error;
    });
    await unwritten();
    return exitCode;
  } catch (error) {
    const failure = failureOfThrown(error, help);
    // Without a command, commander has shown its help already.
    if (!(error instanceof CommanderError && error.code === 'commander.help')) {
      (output ?? outputFor({ json: argv.includes('--json') })).failure(failure);
    }
    if (env.THROUGHLINE_DEBUG && error instanceof Error) stderr.write(`${error.stack}\n`);
    return EXIT[failure.code];
  }
}

function cliFor(own: Pick<Cli, 'parts' | 'clock' | 'output' | 'options'>, exitWith: Cli['exitWith']): Cli {
  const { parts, output, options } = own;
  const onTrouble = (trouble: ThroughlineError) => output.waiting(failureOf(trouble));
  const looking: Cli['looking'] = { ...options, looks: (note) => output.note(note) };
  const withEngine = async (how: GlobalOptions, work: Parameters<Cli['withEngine']>[0]) => {
    const engine = await parts.open({ ...how, onTrouble });
    try {
      exitWith((await work(engine)) ?? DONE);
    } finally {
      await engine.close();
    }
  };
  const withTasks = async (how: GlobalOptions, work: Parameters<Cli['withTasks']>[0]) => {
    const desk = await parts.tasks({ ...how, onTrouble });
    try {
      exitWith((await work(desk)) ?? DONE);
    } finally {
      await desk.tasks.close();
      await desk.engine.close();
    }
  };
  return {
    ...own,
    exitWith,
    looking,
    withEngine: (work) => withEngine(options, work),
    withTasks: (work) => withTasks(options, work),
    lookAt: (work) => withEngine(looking, work),
    lookAtTasks: (work) => withTasks(looking, work),
  };
}

/**
 * Returns a function that throws when something could not be written to stdout, for example on a full disk: half of an export
 * must not look like a whole one. A reader that has left (`| head`) is no error.
 */
function watched(stdout: Sink): () => Promise<void> {
  let fault: NodeJS.ErrnoException | null = null;
  stdout.on('error', (error) => {
    if (error.code !== 'EPIPE') fault ??= error;
  });
  return async () => {
    await new Promise(setImmediate); // a stream reports it a moment after the write
    if (fault === null) return;
    const { code, message } = fault as NodeJS.ErrnoException;
    const full = code === 'ENOSPC' || code === 'EDQUOT';
    throw new ThroughlineError(
      full ? 'storage_full' : 'storage_readonly',
      `Cannot write everything to stdout (${code ?? message}).`,
      {
        hint: full
          ? 'Free some space there, and run the command again.'
          : 'Write to another place, and run the command again.',
      },
    );
  };
}

function failureOfThrown(error: unknown, help: string): Failure {
  if (error instanceof ThroughlineError) return failureOf(error);
  if (error instanceof CommanderError) return failureOfUse(error, help);
  return {
    code: 'internal',
    message: `Internal error: ${oneSentence(error)}`,
    hint: 'This is a bug. Set THROUGHLINE_DEBUG=1 to see where it happened.',
  };
}

/** commander says `error: unknown option '--x'`, and may suggest another on a second line. */
function failureOfUse({ message }: CommanderError, help: string): Failure {
  const [what = '', guess] = message.replace(/^error: /, '').split('\n');
  const sentence = `${what.charAt(0).toUpperCase()}${what.slice(1)}`.replace(/\.?$/, '.');
  const meant = /\(Did you mean (.*)\?\)/.exec(guess ?? '')?.[1];
  const hint = `${meant ? `Did you mean ${meant}? ` : ''}See "${help}".`;
  return { code: 'invalid', message: sentence, hint };
}

function oneSentence(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  return `${text.split('\n', 1)[0]}`.replace(/\.?$/, '.');
}
