import { expect, test } from 'vitest';
import { parsePlan } from '../../../../core/tasks/task-plan.ts';
import { firstProgress } from '../../../../core/tasks/task-progress.ts';
import type { TaskReport } from '../../../../core/tasks/task-report.ts';
import { NO_USAGE } from '../../../../core/turn/usage.ts';
import { reportLines, totalLines } from './report.ts';

test('output of agents and gates can neither end a cell of the report nor control the terminal', () => {
  const [spec] = parsePlan({ goal: 'One.\nTwo.\u001b[31m' }).tasks;
  const progress = firstProgress({ session: null, newSession: null });
  const task = { ...spec, id: 'id', state: 'asking', sessions: 'kept', agent: 'a', progress };
  const result = {
    verdict: 'fail',
    summary: 'a | b\n# c <b> [x](y) `z`\u0007',
    output: '1 ok\n2 </td> | not ok\n',
    cut: 0,
    ms: 1,
  };
  const gates = [{ round: 1, iteration: 1, result, at: 0 }];
  const text = reportLines({ task, turns: [], gates, decisions: [], sessions: [] } as unknown as TaskReport).join('\n');
  expect(text).toContain('| 1.1 | fail | a \\| b<br># c \\<b> \\[x](y) \\`z\\` | 1 | 1 ok<br>2 \\</td> \\| not ok |');
  expect(text).toContain('> One.\n> Two.\n');
  // biome-ignore lint/suspicious/noControlCharactersInRegex: that is what is looked for
  expect(text).not.toMatch(/[\u0000-\u0009\u000b-\u001f]/);
});

test('the report has the end of a long output, and states how much is left out', () => {
  const result = {
    verdict: 'fail' as const,
    summary: 'exit code 1',
    output: `first ${'x'.repeat(2_000)} last`,
    cut: 0,
    ms: 1,
  };
  const report = { ...reported({}), gates: [{ round: 1, iteration: 1, result, at: 0 }] };
  const [line = ''] = reportLines(report).filter((one) => one.includes('exit code 1'));
  expect(line).toMatch(/ \(1011 characters more, see --json\) x+ last \|$/);
});

test('the report of several tasks ends with totals and a verdict', () => {
  const done = { ...reported({ name: 'parser', state: 'done' }).task };
  const asking = reported({ name: 'guide', state: 'asking' }).task;
  const queued = reported({ name: 'later', state: 'queued' }).task;
  expect(totalLines([done, done])[0]).toBe('# All 2 tasks: done');
  expect(totalLines([done, queued])[0]).toBe('# All 2 tasks: not finished: later (queued)');
  const lines = totalLines([done, asking, queued]);
  expect(lines[0]).toBe('# All 3 tasks: a person is needed: guide (asking)');
  expect(lines).toContain('| parser | done | none yet | 2 | 100 | 0.50 USD | 1 (20 ms) |');
  expect(lines.at(-2)).toBe('| all | 1 queued, 1 asking, 1 done |  | 6 | 300 | 1.50 USD | 3 (60 ms) |');
});

function reported(task: { name?: string; state?: string }): TaskReport {
  const [spec] = parsePlan({ goal: 'x' }).tasks;
  const spent = { ...NO_USAGE, inputTokens: 100, costMicros: 500_000 };
  const progress = {
    ...firstProgress({ session: null, newSession: null }),
    turns: 2,
    spent,
    lockWaits: { count: 1, ms: 20 },
  };
  const whole = { ...spec, id: 'id', state: 'done', sessions: 'kept', agent: 'a', progress, ...task };
  return { task: whole, turns: [], gates: [], decisions: [], sessions: [] } as unknown as TaskReport;
}
