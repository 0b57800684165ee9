import type { Command } from 'commander';
import type { Cli } from '../cli.ts';
import { addExamples } from '../examples.ts';
import { DONE } from '../exit-codes.ts';
import { positiveNumber } from '../option-values.ts';
import { styled } from '../output.ts';
import { oneLine } from '../terminal-text.ts';

export function define(command: Command, cli: Cli): void {
  command
    .argument('<words...>', 'turns that have all of them, in the prompt or the answer')
    .option('--limit <n>', 'at most so many', positiveNumber, 20)
    .action((words: string[], { limit }: { limit: number }) => search(words, limit, cli));
  addExamples(command, 'throughline search codeword', 'throughline search release notes --limit 5 --json');
}

async function search(words: readonly string[], limit: number, { output, withEngine }: Cli): Promise<void> {
  await withEngine(async (engine) => {
    const hits = await engine.search(words.join(' '), { limit });
    for (const hit of hits) {
      if (output.json) output.value(hit);
      else
        output.line(styled('bold', oneLine(hit.key ?? hit.conversationId)), ` turn ${hit.n}: ${oneLine(hit.snippet)}`);
    }
    if (hits.length === 0) output.note('Nothing was found.');
    return DONE;
  });
}
