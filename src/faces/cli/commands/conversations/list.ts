import type { Command } from 'commander';
import { inPages } from '../../../../core/input/pages.ts';
import type { PublicConversation } from '../../../../core/public/conversation.ts';
import { addHelp, type Cli } from '../../cli.ts';
import { positiveNumber } from '../../input.ts';
import { strandedLine, time, turns } from '../../lines.ts';
import { styled } from '../../output.ts';
import { oneLine } from '../../terminal-text.ts';

export function define(command: Command, cli: Cli): void {
  command
    .option('--limit <n>', 'at most this many', positiveNumber, 50)
    .option('--session <id>', 'only those that have used this session of an agent')
    .action((flags: ListFlags) => list(flags, cli));
  addHelp(command, {
    examples: [
      'throughline list',
      "throughline list --limit 500 --json | jq -r '.key'",
      'throughline list --session ID',
    ],
  });
}

interface ListFlags {
  readonly limit: number;
  readonly session?: string;
}

async function list({ limit, session }: ListFlags, { output, lookAt }: Cli): Promise<void> {
  await lookAt(async (engine) => {
    const read = (last: PublicConversation | undefined, wanted: number) =>
      engine.list({ limit: wanted, ...(last && { before: last }) });
    const show = ({ key, id, title, historyCount, open, stranded, delayed, updatedAt }: PublicConversation) => {
      const name = styled('bold', oneLine(key ?? id));
      const count = open === 0 ? turns(historyCount) : `${turns(historyCount)} and ${open} open`;
      output.line(name, `  ${count}, ${time(updatedAt)}  `, styled('dim', oneLine(title)));
      const why = stranded ?? delayed;
      if (why !== null) output.line(styled('yellow', `  ${oneLine(strandedLine(why))}`));
    };
    if (session !== undefined) {
      await output.each(await engine.list({ limit, session }), show, 'No conversation has used this session.');
      return;
    }
    const none = 'There are no conversations yet. Start one with "throughline send KEY PROMPT".';
    await output.each(inPages(read, limit), show, none);
  });
}
