import type { Command } from 'commander';
import type { Task } from '../../../core/tasks/task.ts';
import type { Cli } from '../cli.ts';
import { addExamples } from '../examples.ts';
import { DONE } from '../exit-codes.ts';
import { type Output, styled } from '../output.ts';
import { oneLine } from '../terminal-text.ts';
import { time } from '../time.ts';
import { usageLine } from '../usage-line.ts';
import { nameOf, taskLine } from './names.ts';

export function defineShow(task: Command, cli: Cli): void {
  const command = task
    .command('show')
    .summary('show one task as it stands')
    .description('Show one task as it stands; "task report" tells how it got there.')
    .argument('<task>', 'its id or name')
    .action((id: string) => show(id, cli));
  addExamples(command, 'throughline task show parser', "throughline task show parser --json | jq '.progress.decision'");
}

async function show(id: string, { output, withTasks }: Cli): Promise<void> {
  await withTasks(async ({ tasks }) => {
    const task = await tasks.task(id);
    if (output.json) output.value(task);
    else forPeople(task, output);
    return DONE;
  });
}

function forPeople(task: Task, output: Output): void {
  const { id, goal, gate, milestone, progress, createdAt, state } = task;
  const field = (name: string, value: string) => output.line(styled('dim', `${name.padEnd(14)}`), oneLine(value));
  output.line(styled('bold', nameOf(task)), `  ${taskLine(task)}`);
  field('id', id);
  field('goal', goal);
  if (gate !== null) field('gate', gate.kind === 'command' ? gate.command : `${gate.agent} judges: ${gate.ask}`);
  if (milestone !== null) field('milestone', milestone);
  if (progress.conversation !== null) field('conversation', progress.conversation);
  field('added', time(createdAt));
  field('spent', usageLine(progress.spent));
  if (progress.lockWaits.count > 0) field('lock waits', `${progress.lockWaits.count}, ${progress.lockWaits.ms} ms`);
  if (state === 'asking') output.line(`Go on with: throughline task retry ${id} --say "…"`);
}
