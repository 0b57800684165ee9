import type { Command } from 'commander';
import type { PublicTask } from '../../../../core/public/task.ts';
import { addHelp, type Cli } from '../../cli.ts';
import { time, usageLine } from '../../lines.ts';
import { type Output, styled } from '../../output.ts';
import { oneLine } from '../../terminal-text.ts';
import { nameOf, taskLine } from './tasks.ts';

export function defineShow(task: Command, cli: Cli): void {
  const command = task
    .command('show')
    .summary('show the state of a task')
    .description('Show the state of a task. "throughline task report" shows its history.')
    .argument('<task>', 'its id or name')
    .action((id: string) => show(id, cli));
  addHelp(command, {
    examples: ['throughline task show parser', "throughline task show parser --json | jq '.progress.decision'"],
  });
}

async function show(id: string, { output, withTasks }: Cli): Promise<void> {
  await withTasks(async ({ tasks }) => {
    const task = await tasks.task(id);
    if (output.json) output.value(task);
    else forPeople(task, output);
  });
}

function forPeople(task: PublicTask, output: Output): void {
  const { id, goal, gate, milestone, progress, createdAt, state } = task;
  const field = (name: string, value: string) => output.line(styled('dim', `${name.padEnd(14)}`), oneLine(value));
  output.line(styled('bold', nameOf(task)), `  ${taskLine(task)}`);
  field('id', id);
  field('goal', goal);
  if (gate !== null) field('gate', gate.kind === 'command' ? gate.command : `${gate.agent} judges: ${gate.ask}`);
  if (milestone !== null) field('milestone', milestone);
  if (progress.conversationId !== null) field('conversation', progress.conversationId);
  field('added', time(createdAt));
  field('spent', usageLine(progress.spent));
  if (progress.lockWaits.count > 0) field('lock waits', `${progress.lockWaits.count}, ${progress.lockWaits.ms} ms`);
  if (state === 'asking') output.line(`To continue: throughline task retry ${id} --say "…"`);
}
