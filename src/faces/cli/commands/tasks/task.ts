import { type Command, Option } from 'commander';
import { given } from '../../../../core/input/arguments.ts';
import type { PublicTask, PublicTaskUsageRow } from '../../../../core/public/task.ts';
import { type PerGate, perGate, TASK_STATES, type TaskState, taskHasEnded } from '../../../../core/tasks/task.ts';
import { addUsage, NO_USAGE, type Usage } from '../../../../core/turn/usage.ts';
import { inPages } from '../../../../flow/pages.ts';
import { addHelp, type Cli, subcommand } from '../../cli.ts';
import { day, positiveNumber } from '../../input.ts';
import { time, usageLine, usageTable } from '../../lines.ts';
import { type Output, styled } from '../../output.ts';
import { oneLine } from '../../terminal-text.ts';
import { definePlan } from './plan.ts';
import { defineReport } from './report.ts';
import { defineRetry, defineRun } from './run.ts';
import { allTasks, nameOf, taskLine } from './tasks.ts';

export function define(command: Command, cli: Cli): void {
  command.helpCommand(false);
  const verbs = [defineRun, defineList, defineShow, definePlan, defineCancel, defineRetry, defineReport, defineUsage];
  for (const defineOne of verbs) defineOne(command, cli);
  addHelp(command, {
    about:
      'A task is a goal that an agent works on, turn by turn, until its gate passes. Each task has its own conversation and ' +
      'directory. Tasks of one milestone share a conversation, so each of them has its history.',
    examples: [
      `throughline task run "Make the tests pass" --gate 'npm test' --cwd . --budget '2 USD'`,
      'throughline task run --file tasks.yaml',
      'throughline task report NAME > report.md',
    ],
  });
}

interface ListFlags {
  readonly state?: TaskState;
  readonly milestone?: string;
  readonly limit: number;
}

function defineList(task: Command, cli: Cli): void {
  subcommand(task, 'list', {
    summary: 'list tasks, newest first',
    examples: ['throughline task list', 'throughline task list --state asking --json'],
  })
    .addOption(new Option('--state <state>', 'only tasks in this state').choices(TASK_STATES))
    .option('--milestone <name>', 'only tasks of this milestone')
    .option('--limit <n>', 'at most this many', positiveNumber, 50)
    .action((flags: ListFlags) => list(flags, cli));
}

async function list({ state, milestone, limit }: ListFlags, { output, lookAtTasks }: Cli): Promise<void> {
  await lookAtTasks(async ({ tasks }) => {
    await output.each(
      allTasks(tasks, given({ states: state && [state], milestone }), limit),
      (task) =>
        output.line(styled('dim', task.id), '  ', styled('bold', nameOf(task)), `  ${output.runnable(taskLine(task))}`),
      state === undefined && milestone === undefined
        ? 'There are no tasks yet. Start one with "throughline task run GOAL".'
        : 'There are no such tasks.',
    );
  });
}

function defineShow(task: Command, cli: Cli): void {
  subcommand(task, 'show', {
    summary: 'show the state of a task',
    description: 'Show the state of a task. "throughline task report" shows its history.',
    examples: ['throughline task show parser', "throughline task show parser --json | jq '.progress.decision'"],
  })
    .argument('<task>', 'its id or name')
    .action((id: string) => show(id, cli));
}

async function show(id: string, { output, lookAtTasks }: Cli): Promise<void> {
  await lookAtTasks(async ({ tasks }) => {
    const task = await tasks.task(id);
    output.show(task, () => forPeople(task, output));
  });
}

const GATE_LINES: PerGate<string> = {
  command: ({ command }) => command,
  agent: ({ agent, ask }) => `${agent} judges: ${ask}`,
};

function forPeople(task: PublicTask, output: Output): void {
  const { id, planId, goal, gate, milestone, progress, createdAt, state } = task;
  const field = (name: string, value: string) => output.line(styled('dim', `${name.padEnd(14)}`), oneLine(value));
  output.line(styled('bold', nameOf(task)), `  ${output.runnable(taskLine(task))}`);
  field('id', id);
  field('plan', planId);
  field('goal', goal);
  if (gate !== null) field('gate', perGate(gate, GATE_LINES));
  if (milestone !== null) field('milestone', milestone);
  if (progress.conversationId !== null) field('conversation', progress.conversationId);
  field('added', time(createdAt));
  field('spent', usageLine(progress.spent));
  if (progress.lockWaits.count > 0) field('lock waits', `${progress.lockWaits.count}, ${progress.lockWaits.ms} ms`);
  if (progress.denied > 0) field('denied', `${progress.denied} of the agent's questions, because nobody answered`);
  if (state === 'asking') output.line(`To continue: ${output.command(`task retry ${id} --say "…"`)}`);
}

/** How long we wait for the process that runs a task to end it. */
const WAIT_MS = 10_000;

function defineCancel(task: Command, cli: Cli): void {
  subcommand(task, 'cancel', {
    summary: 'stop tasks, with their agents and gates',
    examples: ['throughline task cancel parser', 'throughline task cancel parser printer --json'],
  })
    .argument('<task...>', 'ids or names')
    .action((ids: string[]) => cancel(ids, cli));
}

async function cancel(ids: readonly string[], { output, withTasks }: Cli): Promise<void> {
  await withTasks(async ({ tasks }) => {
    const asked = [];
    for (const id of ids) asked.push((await tasks.cancel(id)).id);
    for (const task of await tasks.waitFor(asked, { signal: AbortSignal.timeout(WAIT_MS) })) {
      const state = taskHasEnded(task.state) ? taskLine(task) : 'was asked to stop, but has not ended yet';
      output.result(task, `${nameOf(task)}  ${state}`);
    }
  });
}

const BY = {
  task: ({ name, taskId }: PublicTaskUsageRow) => name ?? taskId,
  milestone: ({ milestone }: PublicTaskUsageRow) => milestone ?? '(none)',
  day: (row: PublicTaskUsageRow) => row.day,
};

interface UsageFlags {
  readonly since?: string;
  readonly by: keyof typeof BY;
}

function defineUsage(task: Command, cli: Cli): void {
  subcommand(task, 'usage', {
    summary: 'show what the tasks of an owner have spent',
    description: 'Show what the tasks of an owner (--as) have spent.',
    examples: ['throughline task usage --by milestone', 'throughline task usage --since 2026-01-01 --json'],
  })
    .addOption(new Option('--by <what>', 'sum up by this').choices(Object.keys(BY)).default('task'))
    .option('--since <day>', 'from this day on (UTC), such as 2026-01-31', day)
    .action((flags: UsageFlags) => usage(flags, cli));
}

async function usage({ since, by }: UsageFlags, { output, lookAtTasks }: Cli): Promise<void> {
  await lookAtTasks(async ({ tasks }) => {
    const sums = new Map<string, { turns: number; usage: Usage }>();
    const rows = inPages<PublicTaskUsageRow>((last) => tasks.usage(given({ since, before: last })));
    for await (const row of rows) {
      const sum = sums.get(BY[by](row)) ?? { turns: 0, usage: NO_USAGE };
      sums.set(BY[by](row), { turns: sum.turns + row.turns, usage: addUsage(sum.usage, row.usage) });
    }
    const named = [...sums].map(([name, sum]) => ({ names: [name], ...sum }));
    if (output.json) for (const [name, sum] of sums) output.value({ [by]: name, ...sum });
    else for (const line of usageTable(named, output.width)) output.line(line);
    if (sums.size === 0) output.note('There is no usage yet.');
  });
}
