import { resolve } from 'node:path';
import type { Command } from 'commander';
import { ThroughlineError } from '../../../../core/errors.ts';
import type { BackupContents, BackupProgress } from '../../../../ports/store/backup.ts';
import { addHelp, type Cli } from '../../cli.ts';
import { DONE, EXIT } from '../../exit-codes.ts';
import { counted, time } from '../../lines.ts';
import { type Output, styled } from '../../output.ts';
import { onStopSignals } from '../../stop-signals.ts';

interface BackupFlags {
  readonly force?: boolean;
  readonly sandboxes?: boolean;
}

export function define(command: Command, cli: Cli): void {
  command
    .argument('<file>', 'the file to write, readable by you alone')
    .option('--force', 'replace the file if it exists')
    .option('--sandboxes', 'also the sandboxes: the work and the sessions of agents; the file is then a tar archive')
    .action((file: string, flags: BackupFlags) => backup(resolve(file), flags, cli));
  addHelp(command, {
    about:
      'Works while a server runs, and blocks nothing. The file contains the conversations, tasks and keys (their hashes) of all ' +
      'owners, as they were when the command started. It gets its name only when it is complete, on disk and checked: every page, ' +
      'and the chain of events of every conversation. It does not contain settings, the token of the server or installed agents. ' +
      'With --server, the file comes from that server; this needs the token of its data home, or a key with "admin" of the owner ' +
      'that the server was started for. See docs/backup.md.\n' +
      'Exit code 1: not written; or written, but the data itself was not intact before (the output says which).',
    examples: [
      'throughline backup /backups/throughline-$(date +%F).db',
      'throughline backup everything.tar --sandboxes',
      'throughline backup --server https://agents.example.org copy.db --force --json',
    ],
  });
}

async function backup(file: string, { force = false, sandboxes = false }: BackupFlags, cli: Cli): Promise<void> {
  const { parts, options, output, exitWith, waits } = cli;
  const onNote = (note: string) => output.note(styled('yellow', note));
  output.waitFor(waits);
  const made = await parts.backup({ ...options, file, force, sandboxes, onNote, ...progressAndStop(output) });
  output.result(made, `wrote ${made.file}: ${contentsOf(made)}${made.sandboxes ? ', with sandboxes' : ''}`);
  exitWith(reportBroken(made, output));
}

/** Options of a long copy: shows at a terminal how far it is, and stops it with Ctrl-C. */
export function progressAndStop(
  output: Output,
  stopped = 'Cancelled. Nothing was changed.',
): { onProgress: (progress: BackupProgress) => void; signal: AbortSignal } {
  const stop = new AbortController();
  const abort = () => stop.abort(new ThroughlineError('cancelled', stopped));
  onStopSignals({ cancel: abort, terminate: abort, kill: () => process.exit(EXIT.cancelled) });
  let [shown, last] = ['', performance.now()];
  const onProgress = ({ step, done, total }: BackupProgress) => {
    const what =
      step === 'sandboxes' ? 'packing sandboxes' : `${step}: ${Math.floor((100 * done) / Math.max(total, 1))} %`;
    const now = performance.now();
    if (what === shown || now - last < PROGRESS_MS) return;
    [shown, last] = [what, now];
    output.progress(`${what} …`);
  };
  return { onProgress, signal: stop.signal };
}

/** How often the figure changes; a copy that takes less shows none. */
const PROGRESS_MS = 500;

export function contentsOf({ bytes, lastAt, ...counts }: BackupContents): string {
  const until = lastAt === null ? '' : `, until ${time(lastAt)}`;
  return `${countsOf(counts)}${until} (${(bytes / 1_000_000).toFixed(1)} MB)`;
}

export function countsOf({ conversations, turns, events }: Pick<BackupContents, 'conversations' | 'turns' | 'events'>) {
  return [counted(conversations, 'conversation'), counted(turns, 'turn'), counted(events, 'event')].join(', ');
}

/** Returns the exit code. */
export function reportBroken({ broken }: Pick<BackupContents, 'broken'>, output: Output): number {
  for (const { conversation, event } of broken) {
    output.note(
      styled('red', `Not intact: event ${event} of conversation ${conversation} was changed after it was written.`),
    );
  }
  return broken.length === 0 ? DONE : EXIT.storage_damaged;
}
