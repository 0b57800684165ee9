import type { Command } from 'commander';
import { inPages } from '../../../core/pages.ts';
import type { PublicConversation } from '../../../core/public/conversation.ts';
import type { Cli } from '../cli.ts';
import { addExamples } from '../examples.ts';
import { DONE } from '../exit-codes.ts';
import { positiveNumber } from '../option-values.ts';
import { styled } from '../output.ts';
import { turns } from '../receipt-line.ts';
import { oneLine } from '../terminal-text.ts';
import { time } from '../time.ts';

export function define(command: Command, cli: Cli): void {
  command
    .option('--limit <n>', 'at most so many', positiveNumber, 50)
    .action(({ limit }: { limit: number }) => list(limit, cli));
  addExamples(command, 'throughline list', "throughline list --limit 500 --json | jq -r '.key'");
}

async function list(limit: number, { output, withEngine }: Cli): Promise<void> {
  await withEngine(async (engine) => {
    const read = (last: PublicConversation | undefined, wanted: number) =>
      engine.list({ limit: wanted, ...(last && { before: last }) });
    let none = true;
    for await (const conversation of inPages(read, limit)) {
      none = false;
      if (output.json) output.value(conversation);
      else {
        const { key, id, title, historyCount, updatedAt } = conversation;
        const name = styled('bold', oneLine(key ?? id));
        output.line(name, `  ${turns(historyCount)}, ${time(updatedAt)}  `, styled('dim', oneLine(title)));
      }
    }
    if (none) output.note('There are no conversations yet. Begin one with "throughline send KEY PROMPT".');
    return DONE;
  });
}
