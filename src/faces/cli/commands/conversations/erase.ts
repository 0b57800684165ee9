import type { Command } from 'commander';
import { ThroughlineError } from '../../../../core/errors.ts';
import { given } from '../../../../core/input/arguments.ts';
import type { Remains } from '../../../../ports/engine.ts';
import { addHelp, type Cli } from '../../cli.ts';
import { oneLine } from '../../terminal-text.ts';

interface EraseFlags {
  readonly yes?: boolean;
  readonly sandbox?: boolean;
  readonly discard?: boolean;
}

export function define(command: Command, cli: Cli): void {
  command
    .argument('<key>', 'the conversation: its key or id')
    .option('--sandbox', 'also delete its sandbox: the work and the sessions of its agents there')
    .option('--discard', 'with --sandbox: also delete a worktree with uncommitted changes')
    .option('--yes', 'confirm: this cannot be undone')
    .action((key: string, flags: EraseFlags) => erase(key, flags, cli));
  addHelp(command, {
    about:
      'Deletes prompts, answers, receipts, copies of sessions and the texts of its tasks. The numbers and times of its events ' +
      'stay, so that "throughline verify ID" can still check them. Files that agents wrote are listed, but not deleted. With ' +
      "--sandbox, the conversation's own sandbox is deleted as well; this also works later, with the id of the conversation. " +
      'Never deleted: a sandbox that conversations share, a directory that was given with --cwd, and sessions that an agent keeps ' +
      'elsewhere.',
    examples: [
      'throughline erase notes --yes',
      'throughline erase notes --sandbox --yes',
      "throughline erase notes --yes --json | jq '.remains'",
    ],
  });
}

async function erase(key: string, { yes, sandbox, discard }: EraseFlags, { output, withEngine }: Cli): Promise<void> {
  if (!yes) {
    throw new ThroughlineError('invalid', 'Erasing cannot be undone.', { hint: 'Add --yes to confirm.' });
  }
  await withEngine(async (engine) => {
    const result = await engine.erase(key, given({ sandbox, discard }));
    output.result(result, `Erased ${key}. Its id was ${result.conversationId}.`);
    for (const left of result.remains) output.note(oneLine(remainsLine(left, result.conversationId)));
  });
}

function remainsLine(left: Remains, id: string): string {
  switch (left.what) {
    case 'sandbox':
      return left.where.endsWith(id)
        ? `Still there: the sandbox ${left.where}. "throughline erase ${id} --sandbox --yes" deletes it.`
        : `Still there: the sandbox ${left.where}, which conversations share by its name.`;
    case 'directory':
      return `Still there: the working directory ${left.where}.`;
    case 'session':
      return `Still there: the session ${left.sessionId} of ${left.agent}, below ${left.where}.`;
  }
}
