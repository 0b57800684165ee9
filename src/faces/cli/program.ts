import { Command } from 'commander';
import {
  addHelp,
  asDescription,
  type Cli,
  checkNoPassword,
  type GlobalOptions,
  type Help,
  helpWidth,
  notThroughServer,
} from './cli.ts';
import { COMMANDS } from './commands.ts';

interface ProgramOptions {
  readonly version: string;
  /** The first word of the command line. Left out: all commands are registered. */
  readonly first?: string | undefined;
  readonly writeOut: (text: string) => void;
  readonly writeErr: (text: string) => void;
  /** Called when the command and the global options are known, before the command's own options are read. */
  readonly begin: (command: Command, options: GlobalOptions) => Cli;
  /** Called when the arguments of a command are known, before it acts. */
  readonly acting: (command: Command) => void;
}

/** The commands and options, for commander. Parsing throws a CommanderError after wrong use, and after help. */
export function createProgram({ version, first, writeOut, writeErr, begin, acting }: ProgramOptions): Command {
  const program = new Command('throughline')
    .description('Conversations that outlive agent sessions.')
    .version(version, '-V, --version', 'print the version')
    .helpOption('-h, --help', 'print help')
    .helpCommand(false)
    .option('--home <dir>', 'where the data is kept (default: $THROUGHLINE_HOME, else the XDG data directory)')
    .option(
      '--config <file>',
      'the settings file (default: $THROUGHLINE_CONFIG, else throughline.config.json here or in the home)',
    )
    .option(
      '--store <address>',
      'where conversations are kept: sqlite:FILE, or postgres://USER@HOST/DATABASE without a password (default: $THROUGHLINE_STORE, else the setting)',
    )
    .option('--as <owner>', 'act for this owner (default: "local", or the owner of the key to the server)')
    .option(
      '--server <url>',
      'use this server (default: $THROUGHLINE_SERVER, else the running server of the data home)',
    )
    .option('--embedded', 'use the data home directly, even if it has a running server')
    .option('--json', 'print one JSON value per line on stdout, and errors as JSON on stderr')
    .option('--quiet', 'print only errors and questions on stderr')
    .showSuggestionAfterError()
    .exitOverride()
    .configureOutput({ writeOut, writeErr, outputError: () => {}, getOutHelpWidth: helpWidth });
  addHelp(program, HELP);
  for (const [name, { summary, isHidden: hidden = false }] of commandsFor(first)) {
    program.command(name, { hidden }).summary(summary);
  }
  program.hook('preAction', (_, command) => acting(command));
  program.hook('preSubcommand', async (_, command) => {
    const { isLocal = false } = COMMANDS[command.name()] ?? {};
    if (isLocal && program.opts().server !== undefined) throw notThroughServer(command.name());
    checkNoPassword(program.opts().store ?? '', '--store', '; or set THROUGHLINE_STORE to the whole address');
    await loadCommand(command, begin(command, program.opts()));
  });
  return program;
}

/** The commands to register. Registering all takes more than a millisecond, so it is only the one that the first word names, if any. */
function commandsFor(first: string | undefined) {
  const all = Object.entries(COMMANDS);
  const named = all.filter(([name, { needsOthers = false }]) => name === first && !needsOthers);
  return named.length === 0 ? all : named;
}

/** Gives a command of the program its description, arguments, options and action. */
export async function loadCommand(command: Command, cli: Cli): Promise<void> {
  const { summary = '', load } = COMMANDS[command.name()] ?? {};
  command.description(asDescription(summary));
  (await load?.())?.define(command, cli);
}

/** `help COMMAND` is the same as `COMMAND --help`, which loads what it needs. */
export function withoutHelpCommand(argv: readonly string[]): string[] {
  if (argv[0] !== 'help') return [...argv];
  return [...argv.slice(1), '--help'];
}

/**
 * `--version` before a command prints ours. `agents install` has its own `--version`, and commander would take that for the
 * program's, because it looks for options of the program everywhere.
 */
export function withInstallVersion(argv: readonly string[]): string[] {
  const at = argv.indexOf('install', argv.indexOf('agents') + 1);
  if (!argv.includes('agents') || at === -1) return [...argv];
  return argv.map((word, i) => (i > at ? word.replace(/^--version(?==|$)/, '--package-version') : word));
}

const HELP: Help = {
  about:
    'If the data home has a running server ("throughline serve"), the server does the work; else this process does. The token for ' +
    '--server comes from $THROUGHLINE_TOKEN. The token for the server of the data home is read from the data home.\n' +
    'Exit codes: 0 done, 1 failed, 2 wrong use, 3 agent not available, 4 not found, 5 permission denied, 6 context could not be ' +
    'restored, 7 interrupted, 130 cancelled.',
  examples: [
    'throughline demo',
    'throughline send notes "The codeword is osprey"',
    'throughline chat notes',
    'throughline show notes',
    'throughline send --help',
  ],
};
