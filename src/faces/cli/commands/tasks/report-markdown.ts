import { tokensOf } from '../../../../core/tasks/task-decision.ts';
import type { TaskReport } from '../../../../core/tasks/task-report.ts';
import { turns, usageLine } from '../../lines.ts';
import { stripControls } from '../../terminal-text.ts';
import { nameOf } from './tasks.ts';

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
