import type { Command } from 'commander';
import type { PublicPlan, PublicPlanTask } from '../../../../core/public/task.ts';
import type { Tasks } from '../../../../ports/tasks.ts';
import { type Cli, subcommand } from '../../cli.ts';
import { DONE } from '../../exit-codes.ts';
import { positiveNumber } from '../../input.ts';
import { type Output, styled } from '../../output.ts';
import { oneLine } from '../../terminal-text.ts';
import { exitOf } from './watch.ts';

export function definePlan(task: Command, cli: Cli): void {
  subcommand(task, 'plan', {
    summary: 'show whether a plan is running, needs a person, or has ended',
    description:
      'Show whether the tasks that were added together are running, need a person, or have all ended, and what to do.',
    about:
      'The id of a plan is the --request-id with which it was added, or "plan" of "throughline task show".\n' +
      'With --wait, exit code 0: all are done; 1: one has failed, asks a person or waits for such a task; 7: one was interrupted or ' +
      'still runs; 130: one was cancelled.',
    examples: ['throughline task plan nightly', 'throughline task plan nightly --wait 600 --json'],
  })
    .argument('<plan>', 'its id')
    .option('--wait <seconds>', 'while it is running, wait for this time at most', positiveNumber)
    .action((id: string, flags: { wait?: number }) => plan(id, flags, cli));
}

async function plan(id: string, { wait }: { wait?: number }, { output, lookAtTasks }: Cli): Promise<void> {
  await lookAtTasks(async ({ tasks }) => {
    const found = await waitFor(tasks, id, wait ?? 0);
    output.show(found, () => forPeople(found, output));
    return wait === undefined ? DONE : exitOf(found.tasks);
  });
}

/** The longest wait of one call. */
const LONGEST_WAIT = 60;

async function waitFor(tasks: Tasks, id: string, seconds: number): Promise<PublicPlan> {
  const wait = Math.min(seconds, LONGEST_WAIT);
  const found = await tasks.plan(id, { waitMs: wait * 1_000 });
  return found.state === 'running' && seconds > wait ? waitFor(tasks, id, seconds - wait) : found;
}

function forPeople({ id, state, needs, tasks }: PublicPlan, output: Output): void {
  output.line(styled('bold', oneLine(id)), `  ${state === 'needs_person' ? 'needs a person' : state}`);
  for (const task of tasks) output.line('  ', styled('bold', oneLine(task.name ?? task.id)), `  ${line(task)}`);
  for (const { message, hint } of needs) output.line(output.runnable(`${oneLine(message)} ${oneLine(hint)}`));
}

/** Tasks that need a person are described below the list. */
function line({ state, decision }: PublicPlanTask): string {
  const why = decision !== null && (state === 'done' || state === 'failed') ? `: ${oneLine(decision.reason)}` : '';
  return `${state}${why}`;
}
