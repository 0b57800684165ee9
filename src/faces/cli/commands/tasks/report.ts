import type { Command } from 'commander';
import { ThroughlineError } from '../../../../core/errors.ts';
import { tokensOf } from '../../../../core/tasks/task-decision.ts';
import type { TaskReport } from '../../../../core/tasks/task-report.ts';
import { addHelp, type Cli } from '../../cli.ts';
import { turns, usageLine } from '../../lines.ts';
import { stripControls } from '../../terminal-text.ts';
import { allTasks, nameOf } from './tasks.ts';

export function defineReport(task: Command, cli: Cli): void {
  const command = task
    .command('report')
    .summary('report how a task went: sessions, lock waits, decisions, usage, gates')
    .description(
      'Report how tasks went, as Markdown: sessions, lock waits, decisions, usage and the results of their gates.',
    )
    .argument('[task...]', 'ids or names (default: all tasks)')
    .option('--milestone <name>', 'all tasks of this milestone, in the order in which they were added')
    .action((ids: string[], flags: { milestone?: string }) => report(ids, flags, cli));
  addHelp(command, {
    examples: [
      'throughline task report parser > report.md',
      "throughline task report --milestone m1 --json | jq '.task.progress.spent'",
    ],
  });
}

async function report(ids: readonly string[], { milestone }: { milestone?: string }, cli: Cli): Promise<void> {
  const { output, withTasks } = cli;
  if (ids.length > 0 && milestone !== undefined) {
    throw new ThroughlineError('invalid', 'Name tasks or a milestone, not both.', {
      hint: 'Leave one of them out.',
    });
  }
  await withTasks(async ({ tasks }) => {
    const filter = milestone === undefined ? {} : { milestone };
    const wanted = ids.length > 0 ? ids : (await Array.fromAsync(allTasks(tasks, filter), ({ id }) => id)).toReversed();
    for (const id of wanted) {
      const one = await tasks.report(id);
      if (output.json) output.value(one);
      else for (const line of reportLines(one)) output.line(line);
    }
    if (wanted.length === 0) output.note('There are no such tasks.');
  });
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
    ...(progress.decision === null ? [] : [`- ${progress.decision.decision}: ${cell(progress.decision.reason)}`]),
    '',
    ...tables(report),
  ];
}

function tables(report: TaskReport): string[] {
  return [
    ...table(
      'Turns',
      ['turn', 'for', 'agent', 'outcome', 'session', 'context', 'tokens', 'USD', 'lock waits'],
      report.turns.map(({ round, iteration, purpose, agent, outcome, sessionId, rung, usage, lockWaits }) => [
        `${round}.${iteration}`,
        purpose,
        agent,
        outcome,
        sessionId ?? 'none',
        rung ?? 'none',
        String(tokensOf(usage)),
        (usage.costMicros / 1_000_000).toFixed(4),
        lockWaits.count === 0 ? '0' : `${lockWaits.count} (${lockWaits.ms} ms)`,
      ]),
    ),
    ...table(
      'Sessions',
      ['session', 'agent', 'origin', 'state', 'turns here'],
      report.sessions.map(({ id, agent, origin, state, turns }) => [id, agent, origin, state, String(turns)]),
    ),
    ...table(
      'Gate',
      ['turn', 'verdict', 'said', 'ms'],
      report.gates.map(({ round, iteration, result }) => [
        `${round}.${iteration}`,
        result.verdict,
        result.summary,
        String(result.ms),
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

/** Text of agents and programs must neither end a cell nor start any markup. */
function cell(text: string): string {
  return stripControls(text)
    .replaceAll(/\s+/g, ' ')
    .trim()
    .replaceAll(/[|\\`<[]/g, '\\$&');
}

function quoted(text: string): string[] {
  return stripControls(text)
    .split('\n')
    .map((line) => `> ${line}`);
}
