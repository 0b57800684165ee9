import type { Command } from 'commander';
import type { PublicSummary } from '../../../../core/public/conversation.ts';
import { addHelp, type Cli } from '../../cli.ts';
import { strandedLine, time, turns, usageLine } from '../../lines.ts';
import { type Output, styled } from '../../output.ts';
import { oneLine } from '../../terminal-text.ts';

export function define(command: Command, cli: Cli): void {
  command.argument('<key>', 'the conversation: its key or id').action((key: string) => summary(key, cli));
  addHelp(command, {
    about: 'Takes the same time however long the conversation is. In the JSON, "contexts" counts the completed turns.',
    examples: ['throughline summary notes', 'throughline summary notes --json'],
  });
}

async function summary(key: string, { output, lookAt }: Cli): Promise<void> {
  await lookAt(async (engine) => {
    const found = await engine.summary(key);
    output.show(found, () => forPeople(found, output));
  });
}

function forPeople(
  {
    key,
    conversationId,
    title,
    contexts,
    first,
    last,
    sessions,
    changes,
    open,
    stranded,
    delayed,
    lock,
    usage,
  }: PublicSummary,
  output: Output,
) {
  output.line(styled('bold', oneLine(key ?? conversationId)), `  ${oneLine(title)}`);
  const from = first && last ? `, from turn ${first.n} (${time(first.at)}) to turn ${last.n} (${time(last.at)})` : '';
  output.line(`${turns(contexts)} completed${from}; ${open} open`);
  output.line(`sessions: ${sessions}, changes between them: ${changes}`);
  output.line(lock ? `held by ${lock.holder}` : 'not held by any process');
  const why = stranded ?? delayed;
  if (why !== null) output.line(styled('yellow', output.runnable(oneLine(strandedLine(why)))));
  output.line(`used: ${usageLine(usage)}`);
}
