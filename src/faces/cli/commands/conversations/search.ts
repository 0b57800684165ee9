import type { Command } from 'commander';
import { addHelp, type Cli } from '../../cli.ts';
import { positiveNumber } from '../../input.ts';
import { styled } from '../../output.ts';
import { oneLine } from '../../terminal-text.ts';

export function define(command: Command, cli: Cli): void {
  command
    .argument(
      '<words...>',
      'find turns that have all of them, in the prompt or in the answer, and conversations by their titles',
    )
    .option('--limit <n>', 'at most this many', positiveNumber, 20)
    .action((words: string[], { limit }: { limit: number }) => search(words, limit, cli));
  addHelp(command, {
    examples: ['throughline search codeword', 'throughline search release notes --limit 5 --json'],
  });
}

async function search(words: readonly string[], limit: number, { output, lookAt }: Cli): Promise<void> {
  await lookAt(async (engine) => {
    await output.each(
      await engine.search(words.join(' '), { limit }),
      ({ key, conversationId, n, snippet }) =>
        output.line(
          styled('bold', oneLine(key ?? conversationId)),
          ` ${n === null ? 'title' : `turn ${n}`}: ${oneLine(snippet)}`,
        ),
      'No turn and no title has all of these words.',
    );
  });
}
