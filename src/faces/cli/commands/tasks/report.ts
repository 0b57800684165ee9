import type { Command } from 'commander';
import { ThroughlineError } from '../../../../core/errors.ts';
import { given } from '../../../../core/input/arguments.ts';
import { costText, tokensOf } from '../../../../core/limits/budget.ts';
import type { PublicTask } from '../../../../core/public/task.ts';
import { TASK_STATES, type TaskState } from '../../../../core/tasks/task.ts';
import { type TaskReport, type TaskTotals, totalsOf } from '../../../../core/tasks/task-report.ts';
import { type Cli, subcommand } from '../../cli.ts';
import { turns, usageLine } from '../../lines.ts';
import { codeText, stripControls } from '../../terminal-text.ts';
import { allTasks, nameOf } from './tasks.ts';

export function defineReport(task: Command, cli: Cli): void {
  subcommand(task, 'report', {
    summary: 'report how a task went: sessions, lock waits, decisions, usage, gates',
    description:
      'Report how tasks went, as Markdown: sessions, lock waits, decisions, usage, and the results and output of their gates. ' +
      'The report of several tasks ends with totals and a verdict.',
    about: 'With --json, each task is one line. Of several tasks, the last line is {"totals"}.',
    examples: [
      'throughline task report parser > report.md',
      "throughline task report --milestone m1 --json | jq '.task.progress.spent'",
    ],
  })
    .argument('[task...]', 'ids or names (default: all tasks)')
    .option('--milestone <name>', 'all tasks of this milestone, in the order in which they were added')
    .action((ids: string[], flags: { milestone?: string }) => report(ids, flags, cli));
}

async function report(ids: readonly string[], { milestone }: { milestone?: string }, cli: Cli): Promise<void> {
  const { output, lookAtTasks } = cli;
  if (ids.length > 0 && milestone !== undefined) {
    throw new ThroughlineError('invalid', 'Name tasks or a milestone, not both.', {
      hint: 'Leave one of them out.',
    });
  }
  await lookAtTasks(async ({ tasks }) => {
    const all = allTasks(tasks, given({ milestone }));
    const wanted = ids.length > 0 ? ids : (await Array.fromAsync(all, ({ id }) => id)).toReversed();
    const reported: PublicTask[] = [];
    for (const id of wanted) {
      const one = await tasks.report(id);
      reported.push(one.task);
      if (output.json) output.value(one);
      else for (const line of reportLines(one)) output.line(line);
    }
    if (reported.length === 0) output.note('There are no such tasks.');
    if (reported.length < 2) return;
    if (output.json) output.value({ totals: totalsOf(reported) });
    else for (const line of totalLines(reported)) output.line(line);
  });
}

/** The last part of the report of several tasks: a line for each, the sums, and a verdict. */
export function totalLines(tasks: readonly PublicTask[]): string[] {
  const totals = totalsOf(tasks);
  const { spent, lockWaits } = totals;
  const row = (name: string, { turns: count, spent, lockWaits }: Sums, rest: readonly string[]) => [
    name,
    ...rest,
    String(count),
    String(tokensOf(spent)),
    costText(spent) ?? '–',
    waited(lockWaits),
  ];
  return [
    `# All ${tasks.length} tasks: ${verdictOf(tasks)}`,
    '',
    ...table(
      'Totals',
      ['task', 'state', 'last decision', 'turns', 'tokens', 'cost', 'lock waits'],
      [
        ...tasks.map((task) =>
          row(nameOf(task), task.progress, [task.state, task.progress.decision?.reason ?? 'none yet']),
        ),
        row('all', { turns: totals.turns, spent, lockWaits }, [statesOf(totals.states), '']),
      ],
    ),
  ];
}

type Sums = Pick<PublicTask['progress'], 'turns' | 'spent' | 'lockWaits'>;

function verdictOf(tasks: readonly PublicTask[]): string {
  const named = (states: readonly TaskState[]) =>
    tasks.filter(({ state }) => states.includes(state)).map((task) => `${nameOf(task)} (${task.state})`);
  switch (totalsOf(tasks).verdict) {
    case 'done':
      return 'done';
    case 'unfinished':
      return `not finished: ${inShort(named(['waiting', 'queued', 'running']))}`;
    case 'attention':
      return `a person is needed: ${inShort(named(['asking', 'failed', 'cancelled']))}`;
  }
}

const MOST_NAMED = 10;

function inShort(names: readonly string[]): string {
  const more = names.length - MOST_NAMED;
  return `${names.slice(0, MOST_NAMED).map(cell).join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
}

function statesOf(states: TaskTotals['states']): string {
  return TASK_STATES.flatMap((state) => (states[state] ? [`${states[state]} ${state}`] : [])).join(', ');
}

function waited({ count, ms }: Sums['lockWaits']): string {
  return count === 0 ? '0' : `${count} (${ms} ms)`;
}

/** A report for people, as Markdown. */
export function reportLines(report: TaskReport): string[] {
  const { task } = report;
  const { progress } = task;
  return [
    `# ${nameOf(task)}: ${task.state}`,
    '',
    ...quoted(task.goal),
    '',
    `- task \`${task.id}\`, conversation ${progress.conversationId === null ? 'none yet' : `\`${progress.conversationId}\``}`,
    `- ${turns(progress.turns)}, sessions ${task.sessions}`,
    `- spent: ${usageLine(progress.spent)}`,
    `- lock waits: ${progress.lockWaits.count}, ${progress.lockWaits.ms} ms`,
    `- denied because nobody answered: ${progress.denied}`,
    ...(progress.decision === null ? [] : [`- ${progress.decision.decision}: ${cell(progress.decision.reason)}`]),
    '',
    ...tables(report),
  ];
}

function tables(report: TaskReport): string[] {
  return [
    ...table(
      'Turns',
      ['turn', 'for', 'agent', 'outcome', 'session', 'context', 'tokens', 'cost', 'lock waits'],
      report.turns.map(({ round, iteration, purpose, agent, outcome, sessionId, rung, usage, lockWaits }) => [
        `${round}.${iteration}`,
        purpose,
        agent,
        outcome,
        sessionId ?? 'none',
        rung ?? 'none',
        String(tokensOf(usage)),
        costText(usage) ?? '–',
        waited(lockWaits),
      ]),
    ),
    ...table(
      'Denied',
      ['turn', 'for', 'question', 'why'],
      report.turns.flatMap(({ round, iteration, purpose, denied }) =>
        denied.map(({ title, reason }) => [`${round}.${iteration}`, purpose, codeText(title), reason]),
      ),
    ),
    ...table(
      'Sessions',
      ['session', 'agent', 'origin', 'state', 'turns here'],
      report.sessions.map(({ id, agent, origin, state, turns }) => [id, agent, origin, state, String(turns)]),
    ),
    ...table(
      'Gate',
      ['turn', 'verdict', 'said', 'ms', 'output'],
      report.gates.map(({ round, iteration, result }) => [
        `${round}.${iteration}`,
        result.verdict,
        result.summary,
        String(result.ms),
        result.output,
      ]),
    ),
    ...table(
      'Decisions',
      ['turn', 'decision', 'code', 'reason'],
      report.decisions.map(({ round, iteration, decision, code, reason }) => [
        `${round}.${iteration}`,
        decision,
        code,
        reason,
      ]),
    ),
  ];
}

function table(title: string, head: readonly string[], rows: readonly (readonly string[])[]): string[] {
  if (rows.length === 0) return [];
  const line = (cells: readonly string[]) => `| ${cells.map(cell).join(' | ')} |`;
  return [`## ${title}`, '', line(head), line(head.map(() => '---')), ...rows.map(line), ''];
}

/** Text of agents and programs must neither end a cell nor start any markup. Of long text, the end is shown. */
function cell(text: string): string {
  const compact = stripControls(text)
    .trim()
    .replaceAll(/\s+/g, (space) => (space.includes('\n') ? '\n' : ' '));
  const shown = compact.length > LONGEST_CELL ? endOf(compact) : compact;
  return shown.replaceAll(/[|\\`<[]/g, '\\$&').replaceAll('\n', '<br>');
}

const LONGEST_CELL = 1_000;

function endOf(text: string): string {
  const end = text.slice(-LONGEST_CELL).toWellFormed();
  return `… (${text.length - LONGEST_CELL} characters more, see --json) ${end}`;
}

function quoted(text: string): string[] {
  return stripControls(text)
    .split('\n')
    .map((line) => `> ${line}`);
}
