import { resolve } from 'node:path';
import type { Command } from 'commander';
import type { Restored } from '../../../../ports/store/backup.ts';
import { addHelp, type Cli } from '../../cli.ts';
import { counted } from '../../lines.ts';
import { type Output, styled } from '../../output.ts';
import { contentsOf, progressAndStop, reportBroken } from './backup.ts';

interface RestoreFlags {
  readonly moveHere?: boolean;
  readonly force?: boolean;
}

export function define(command: Command, cli: Cli): void {
  command
    .argument('<file>', 'a file that "throughline backup" has written')
    .option('--move-here', 'continue its conversations in this data home, because the original one is gone')
    .option('--force', 'restore a backup in which events were changed')
    .action((file: string, flags: RestoreFlags) => restore(resolve(file), flags, cli));
  addHelp(command, {
    about:
      'The backup is checked first. All of the data is replaced, or nothing. The current data is moved to the directory "aside" in the data home; nothing is deleted. Refused ' +
      'while a server or another program uses the data home. A backup with sandboxes replaces the sandboxes as well. ' +
      'Turns after the backup are gone from the record, but agents may remember them. Their sessions are then not continued: the ' +
      'next turn starts a new one from the record, and its receipt says so. A conversation runs only in the data home that its ' +
      'sandbox is in. In another one it can be read and forked, or with --move-here continued, in an empty sandbox. ' +
      'See docs/backup.md.\n' +
      'Exit code 1: not restored; or restored with --force, although events were changed before (the output says which).',
    examples: [
      'throughline restore /backups/throughline-2026-01-31.db',
      'throughline restore --home /new/home everything.tar --move-here --json',
    ],
  });
}

async function restore(file: string, { moveHere = false, force = false }: RestoreFlags, cli: Cli): Promise<void> {
  const { parts, options, output, exitWith, waits } = cli;
  output.waitFor(waits);
  const restored = await parts.restore({ ...options, file, moveHere, force, ...progressAndStop(output) });
  output.result(restored, `restored ${restored.to}: ${contentsOf(restored)}`);
  explain(restored, output);
  exitWith(reportBroken(restored, output));
}

function explain({ kept, elsewhere, moved }: Restored, output: Output): void {
  for (const path of kept) output.note(`kept what was there: ${path}`);
  if (moved > 0) {
    output.note(
      `${counted(moved, 'conversation')} moved here. What their agents wrote elsewhere is not here, unless the backup had it.`,
    );
  }
  for (const { home, conversations } of elsewhere) {
    output.note(
      styled(
        'yellow',
        `${counted(conversations, 'conversation')} of the data home ${home}: they can be read and forked here, not continued.`,
      ),
      ' If that data home is gone, restore with --move-here.',
    );
  }
}
