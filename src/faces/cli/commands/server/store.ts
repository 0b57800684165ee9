import type { Command } from 'commander';
import { ThroughlineError } from '../../../../core/errors.ts';
import { shellWord } from '../../../../core/turn/quoted.ts';
import type { StoreCopied } from '../../../../ports/store/backup.ts';
import { addHelp, type Cli, checkNoPassword, subcommand } from '../../cli.ts';
import { counted } from '../../lines.ts';
import { type Output, styled } from '../../output.ts';
import { countsOf, progressAndStop, reportBroken } from './backup.ts';

const STORES = 'sqlite:FILE, a data home, or postgres://USER@HOST/DATABASE without a password';

export function define(command: Command, cli: Cli): void {
  command.helpCommand(false);
  subcommand(command, 'copy', {
    summary: 'copy everything from one store to another',
    description: 'Copy everything from one store to another: from SQLite to PostgreSQL, or back.',
    about:
      'Copies the conversations, tasks and keys of all owners. A server may use the source meanwhile: then stop the ' +
      'server, and run the same command again. The second run copies what is new and verifies the chain of events of every conversation. ' +
      'Only then can the target be used, and the source is refused from then on: otherwise both would continue separately. A copy that ' +
      'was stopped or killed continues with the same command. Files of agents are not copied: a conversation continues where its ' +
      'directory is, with "throughline serve --home … --store …" of the data home that it belongs to. ' +
      'See docs/deploy.md.\n' +
      'Exit code 1: failed; or copied, but events in the source were changed before (the output says which).',
    examples: [
      'throughline store copy ~/.local/share/throughline postgres://throughline@db.example.org/throughline',
      'PGPASSWORD=… throughline store copy sqlite:/srv/throughline.db postgres://throughline@localhost/throughline --json',
      'throughline store copy postgres://throughline@db.example.org/throughline sqlite:/srv/back.db',
    ],
  })
    .argument('<from>', STORES)
    .argument('<to>', 'an address of the same kinds; it must be empty, or an unfinished copy of the same store')
    .action((from: string, to: string) => copy(from, to, cli));
  subcommand(command, 'reopen', {
    summary: 'use a store again whose data was copied to another one',
    description: 'Use a store again whose data was copied to another one.',
    about:
      'A store is refused after "throughline store copy" has copied its data. This command lets it be used again, beside the other one: ' +
      'from then on, each has what the other lacks. It changes nothing else.',
    examples: [
      'throughline store reopen ~/.local/share/throughline',
      'throughline store reopen sqlite:/srv/throughline.db',
    ],
  })
    .argument('<store>', STORES)
    .action((store: string) => reopen(store, cli));
  addHelp(command, {
    examples: [
      'throughline store copy ~/.local/share/throughline postgres://throughline@localhost/throughline',
      'throughline store copy --help',
    ],
  });
}

async function copy(from: string, to: string, { parts, options, output, exitWith, waits }: Cli): Promise<void> {
  checkNoPassword(from, 'FROM');
  checkNoPassword(to, 'TO');
  checkUnused(options, '"store copy" takes both stores as arguments');
  output.waitFor(waits);
  const stopped = 'Cancelled. Run the same command again to continue.';
  const copied = await parts.copyStore({ from, to, ...progressAndStop(output, stopped) });
  output.result(copied, `${copied.complete ? 'copied' : 'copied so far'}: ${countsOf(copied)}`);
  explain(copied, from, output);
  exitWith(reportBroken(copied, output));
}

/** `source`: as it was given. */
function explain({ complete, from, to, places }: StoreCopied, source: string, output: Output): void {
  if (!complete) {
    output.note(
      styled(
        'yellow',
        `${from} is in use: what is written there from now on is not in the copy, which cannot be used yet.`,
      ),
      ' Stop its servers and programs, and run the same command again.',
    );
    return;
  }
  output.note(
    `${to} has everything, and every chain of events was verified. ${from} is refused from now on; ` +
      `"throughline store reopen ${shellWord(source)}" undoes that.`,
  );
  for (const { name, conversations } of places) {
    output.note(
      `${counted(conversations, 'conversation')} with files at ${name}: they continue only there, and can be read and forked everywhere.`,
    );
  }
}

async function reopen(store: string, { parts, options, output }: Cli): Promise<void> {
  checkNoPassword(store, 'STORE');
  checkUnused(options, '"store reopen" takes the store as its argument');
  const reopened = await parts.reopenStore(store);
  const { successor } = reopened;
  const was =
    successor === null
      ? 'It was not copied to another store.'
      : `${successor} has its data, too, and continues separately.`;
  output.result(reopened, `${reopened.store} can be used. ${was}`);
}

function checkUnused(options: Cli['options'], why: string): void {
  const unused = (['home', 'config', 'store'] as const).find((name) => options[name] !== undefined);
  if (unused !== undefined) throw new ThroughlineError('invalid', `${why}, so --${unused} cannot be used.`);
}
