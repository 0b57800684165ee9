import type { Command } from 'commander';
import type { PublicSummary } from '../../../core/public/conversation.ts';
import type { Cli } from '../cli.ts';
import { addExamples } from '../examples.ts';
import { DONE } from '../exit-codes.ts';
import { type Output, styled } from '../output.ts';
import { turns } from '../receipt-line.ts';
import { oneLine } from '../terminal-text.ts';
import { time } from '../time.ts';
import { usageLine } from '../usage-line.ts';

export function define(command: Command, cli: Cli): void {
  command.argument('<key>', 'the conversation: its key or id').action((key: string) => summary(key, cli));
  command.addHelpText(
    'after',
    '\nCosts the same however long the conversation is. `contexts` are its completed turns.',
  );
  addExamples(command, 'throughline summary notes', 'throughline summary notes --json');
}

async function summary(key: string, { output, withEngine }: Cli): Promise<void> {
  await withEngine(async (engine) => {
    const found = await engine.summary(key);
    if (output.json) output.value(found);
    else forPeople(found, output);
    return DONE;
  });
}

function forPeople(
  { key, conversationId, title, contexts, first, last, sessions, changes, open, lock, usage }: PublicSummary,
  output: Output,
) {
  output.line(styled('bold', oneLine(key ?? conversationId)), `  ${oneLine(title)}`);
  const from = first && last ? `, from turn ${first.n} (${time(first.at)}) to turn ${last.n} (${time(last.at)})` : '';
  output.line(`${turns(contexts)} completed${from}; ${open} open`);
  output.line(`sessions: ${sessions}, changes between them: ${changes}`);
  output.line(lock ? `held by ${lock.holder}` : 'held by nobody');
  output.line(`used: ${usageLine(usage)}`);
}
