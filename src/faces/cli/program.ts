import { Command } from 'commander';
import type { Cli, GlobalOptions } from './cli.ts';
import { COMMANDS } from './commands.ts';
import { notThroughServer } from './not-through-server.ts';

export interface ProgramOptions {
  readonly version: string;
  readonly writeOut: (text: string) => void;
  readonly writeErr: (text: string) => void;
  /** Called when the command and the global options are known, before the command's own are read. */
  readonly begin: (command: string, options: GlobalOptions) => Cli;
}

/** The commands and options as commander knows them. Throws a CommanderError for every wrong use, and after help. */
export function createProgram({ version, writeOut, writeErr, begin }: ProgramOptions): Command {
  const program = new Command('throughline')
    .description('Conversations that outlive agent sessions.')
    .version(version, '--version', 'print the version')
    .helpOption('-h, --help', 'print help')
    .helpCommand(false)
    .option('--home <dir>', 'where the data lives (else $THROUGHLINE_HOME, else the XDG data directory)')
    .option('--config <file>', 'the settings (else $THROUGHLINE_CONFIG, throughline.config.json here or in the home)')
    .option('--as <owner>', 'act for this owner (else "local", or whoever the key to the server stands for)')
    .option('--server <url>', 'work through this server (else $THROUGHLINE_SERVER, else the one that the home has)')
    .option('--embedded', 'work on the data home directly, also when a server runs')
    .option('--json', 'one JSON value a line, on stdout; errors likewise, on stderr')
    .option('--quiet', 'nothing on stderr but errors and questions')
    .showSuggestionAfterError()
    .exitOverride()
    .configureOutput({ writeOut, writeErr, outputError: () => {} })
    .addHelpText('after', HELP);
  for (const [name, { summary }] of Object.entries(COMMANDS)) program.command(name).summary(summary);
  program.hook('preSubcommand', async (_, command) => {
    const { summary = '', load, isLocal = false } = COMMANDS[command.name()] ?? {};
    if (isLocal && program.opts().server !== undefined) throw notThroughServer(command.name());
    const { define } = (await load?.()) ?? {};
    command.description(`${summary.charAt(0).toUpperCase()}${summary.slice(1)}.`);
    define?.(command, begin(command.name(), program.opts()));
  });
  return program;
}

/** `help COMMAND` is the same as `COMMAND --help`, which loads what it needs. */
export function withoutHelpCommand(argv: readonly string[]): string[] {
  if (argv[0] !== 'help') return [...argv];
  return argv[1] === undefined ? ['--help'] : [argv[1], '--help'];
}

/**
 * `--version` before a command prints ours. `agents install` has one of its own, and commander would take it for the first:
 * it looks for the options of the program everywhere.
 */
export function withInstallVersion(argv: readonly string[]): string[] {
  const at = argv.indexOf('install', argv.indexOf('agents') + 1);
  if (!argv.includes('agents') || at === -1) return [...argv];
  return argv.map((word, i) => (i > at ? word.replace(/^--version(?==|$)/, '--package-version') : word));
}

const HELP = `
Examples:
  $ throughline demo
  $ throughline send notes "The codeword is osprey"
  $ throughline show notes
  $ throughline COMMAND --help

A server that runs for the data home ("throughline serve") does the work of every command; else this process does. A token for
--server is taken from $THROUGHLINE_TOKEN, or from the data home when it is that home's own server.

Exit codes: 0 done, 1 failed, 2 wrong use, 3 agent not available, 4 no such thing, 5 permission denied,
6 context could not be restored, 7 interrupted, 130 cancelled.`;
