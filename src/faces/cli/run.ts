import { existsSync, readFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { type Command, CommanderError } from 'commander';
import { type Failure, failureOf, ThroughlineError } from '../../core/errors.ts';
import { shellWord } from '../../core/turn/quoted.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Cli, GlobalOptions, Parts } from './cli.ts';
import { COMMANDS, WAITS } from './commands.ts';
import { DONE, EXEC_EXIT, EXIT } from './exit-codes.ts';
import { nearest, withSuggestion } from './names.ts';
import { Output, type Sink } from './output.ts';
import { createProgram, loadCommand, withInstallVersion, withoutHelpCommand } from './program.ts';

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
  const checkWritten = watchWrites(stdout);
  stderr.on('error', () => {}); // there is no other place to report it
  const outputFor = ({ json = false, quiet = false, ...where }: GlobalOptions) =>
    new Output({
      stdout,
      stderr,
      json,
      quiet,
      color: !env.NO_COLOR && env.TERM !== 'dumb',
      command: (words) => `${commandIn(env)} ${[...flagsFor(words, where, env), words].join(' ')}`,
    });
  let output: Output | null = null;
  let exitCode = DONE;
  let begun: Command | null = null;
  let inner: Command | null = null;
  let acted: Command | null = null;
  let globals: GlobalOptions = {};
  const begin = (command: Command, given: GlobalOptions): Cli => {
    [begun, globals, output] = [command, given, outputFor(given)];
    command.hook('preSubcommand', (_, next) => {
      // The default subcommand runs without being named.
      if (words.includes(next.name())) inner = next;
    });
    const waits = WAITS[command.name()] ?? 'working …';
    return cliFor({ parts, clock, output, options: given, waits }, (code) => {
      exitCode = code;
    });
  };
  const words = withInstallVersion(withoutHelpCommand(argv));
  const program = createProgram({
    version,
    first: words[0],
    writeOut: (text) => stdout.write(inHelp(text, commandIn(env))),
    writeErr: (text) => stderr.write(text),
    begin,
    acting: (command) => {
      acted = command;
    },
  });
  try {
    await program.parseAsync(words, { from: 'user' }).catch((error) => {
      if (!(error instanceof CommanderError && error.exitCode === 0)) throw error;
    });
    await checkWritten();
    return exitCode;
  } catch (error) {
    const failure = await withSuggestion(failureOfThrown(error, begun, inner), acted, parts, globals);
    // Without a command, commander has shown its help already.
    if (!(error instanceof CommanderError && error.code === 'commander.help')) {
      (output ?? outputFor({ json: argv.includes('--json') })).failure(failure);
    }
    if (env.THROUGHLINE_DEBUG && error instanceof Error) stderr.write(`${error.stack}\n`);
    return isExec(begun, inner) ? EXEC_EXIT.ours : EXIT[failure.code];
  } finally {
    (output as Output | null)?.waitFor(null);
  }
}

/** `inner`: the subcommand that was named. Its failures must not look like those of the command that it runs. */
function isExec(begun: Command | null, inner: Command | null): boolean {
  return begun?.name() === 'sandbox' && inner?.name() === 'exec';
}

/**
 * How the shell of this environment runs us: by name; by npx, in a checkout and where a project has installed us; elsewhere by the path of
 * our program, because npx would ask the registry for the name. npm adds folders of packages to the path of what it runs; the shell does
 * not have them.
 */
function commandIn({ PATH = '' }: NodeJS.ProcessEnv): string {
  if (PATH === '') return 'throughline';
  const folders = PATH.split(delimiter).filter(
    (folder) => folder !== '' && !folder.endsWith(join('node_modules', '.bin')),
  );
  if (folders.some((folder) => existsSync(join(folder, 'throughline')))) return 'throughline';
  const [, program] = process.argv;
  return program === undefined || npxFindsUs(here()) ? 'npx throughline' : shellWord(program);
}

/** The root if the working directory was deleted: Node then cannot tell it. */
function here(): string {
  try {
    return process.cwd();
  } catch {
    return '/';
  }
}

/** As a package of the folder or of one above it, or as the project that the folder is in (`inProject`: that was found already). */
function npxFindsUs(folder: string, inProject = false): boolean {
  if (existsSync(join(folder, 'node_modules', '.bin', 'throughline'))) return true;
  const manifest = join(folder, 'package.json');
  const isProject = existsSync(manifest);
  if (isProject && !inProject && /"name":\s*"throughline"/.test(readFileSync(manifest, 'utf8'))) return true;
  const above = dirname(folder);
  return above !== folder && npxFindsUs(above, inProject || isProject);
}

/** Where the environment may say the same as a flag. */
const VARIABLES: Readonly<Record<string, string>> = {
  home: 'THROUGHLINE_HOME',
  config: 'THROUGHLINE_CONFIG',
  store: 'THROUGHLINE_STORE',
  server: 'THROUGHLINE_SERVER',
};

/**
 * The flags of this call that a command in a text of ours needs to reach the same data; without them it may open another data home, and
 * begin the same conversation there. `words`: the command. None for one that names a data home itself, and for `store copy`, which takes no
 * such flags. A server is not named to commands that work on its machine.
 */
function flagsFor(words: string, options: GlobalOptions, env: NodeJS.ProcessEnv): string[] {
  const [name = ''] = words.split(' ', 1);
  if (name === 'store' || /--(home|help)\b/.test(words)) return [];
  const isLocal = COMMANDS[name]?.isLocal ?? false;
  const { home, config, store } = options;
  const named = { home, config, store, ...(!isLocal && { server: options.server, as: options.as }) };
  return Object.entries(named).flatMap(([flag, value]) => {
    const isKnown = value === undefined || value === env[VARIABLES[flag] ?? ''];
    return isKnown || words.includes(`--${flag} `) ? [] : [`--${flag}`, shellWord(value)];
  });
}

/** The help, with examples and commands as they can be run here. */
function inHelp(text: string, command: string): string {
  if (command === 'throughline') return text;
  const examples = text.replaceAll(/^ *\$ .*$/gm, (line) => line.replace(/\bthroughline (?=[a-z-])/, `${command} `));
  return examples.replaceAll('"throughline ', `"${command} `);
}

/** This process may upgrade the data, or wait for another process that does. A server may not answer at once. */
const OPENING = 'opening the data …';
/** An agent may take a while to end. */
const CLOSING = 'closing …';

type Close<T> = (opened: T) => Promise<void>;

function cliFor(own: Pick<Cli, 'parts' | 'clock' | 'output' | 'options' | 'waits'>, exitWith: Cli['exitWith']): Cli {
  const { parts, output, options, waits } = own;
  const onTrouble = (trouble: ThroughlineError) => output.waiting(failureOf(trouble));
  const looking: Cli['looking'] = { ...options, looks: (note) => output.note(note) };
  const during = async <T>(open: () => Promise<T>, work: (one: T) => Promise<number | undefined>, close: Close<T>) => {
    output.waitFor(OPENING);
    const opened = await open();
    output.waitFor(waits);
    try {
      exitWith((await work(opened)) ?? DONE);
    } finally {
      output.waitFor(CLOSING);
      await close(opened);
    }
  };
  const withEngine = (how: GlobalOptions, work: Parameters<Cli['withEngine']>[0]) =>
    during(
      () => parts.open({ ...how, onTrouble }),
      work,
      (engine) => engine.close(),
    );
  const withTasks = (how: GlobalOptions, work: Parameters<Cli['withTasks']>[0]) =>
    during(
      () => parts.tasks({ ...how, onTrouble }),
      work,
      async ({ tasks, engine }) => {
        await tasks.close();
        await engine.close();
      },
    );
  const cli: Cli = {
    ...own,
    exitWith,
    looking,
    load: (command) => loadCommand(command, cli),
    withEngine: (work) => withEngine(options, work),
    withTasks: (work) => withTasks(options, work),
    lookAt: (work) => withEngine(looking, work),
    lookAtTasks: (work) => withTasks(looking, work),
  };
  return cli;
}

/**
 * Returns a function that throws when something could not be written to stdout, for example on a full disk: half of an export
 * must not look like a whole one. A reader that has left (`| head`) is no error.
 */
function watchWrites(stdout: Sink): () => Promise<void> {
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

/** `begun`: the command that was named, `inner`: its subcommand; null: none was, or there is no such one. */
function failureOfThrown(error: unknown, begun: Command | null, inner: Command | null): Failure {
  if (error instanceof ThroughlineError) return failureOf(error);
  if (error instanceof CommanderError) {
    const named = [begun, inner].map((command) => (command === null ? '' : `${command.name()} `));
    const help = `throughline ${named.join('')}--help`;
    return unknownSubcommand(error, begun, help) ?? failureOfUse(error, help);
  }
  // Node says this whenever something needs the directory: a relative path, the settings file that may be there.
  if (error instanceof Error && 'syscall' in error && error.syscall === 'uv_cwd') return WORKING_DIRECTORY_GONE;
  return {
    code: 'internal',
    message: `Internal error: ${oneSentence(error)}`,
    hint: 'This is a bug. Set THROUGHLINE_DEBUG=1 to see where it happened.',
  };
}

const WORKING_DIRECTORY_GONE: Failure = {
  code: 'invalid',
  message: 'The working directory of this command was deleted.',
  hint: 'Change to another ("cd"), and run it again.',
};

/** For a command that also acts without a subcommand, commander reports a wrong subcommand as an excess argument. Null: another error. */
function unknownSubcommand({ code }: CommanderError, begun: Command | null, help: string): Failure | null {
  if (code !== 'commander.excessArguments' || begun === null || begun.commands.length === 0) return null;
  const [word = ''] = begun.args;
  const names = begun.commands.map((one) => one.name());
  if (names.includes(word)) return null;
  const meant = nearest(word, names);
  const hint = meant === null ? `Commands of "${begun.name()}": ${names.join(', ')}.` : `Did you mean ${meant}?`;
  return { code: 'invalid', message: `Unknown command '${word}'.`, hint: `${hint} See "${help}".` };
}

/** commander writes `error: unknown option '--x'`, and may suggest another option on a second line. */
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
