import { expect, test } from 'vitest';
import { parsePlan } from '../../../../core/tasks/task-plan.ts';
import { firstProgress } from '../../../../core/tasks/task-progress.ts';
import type { TaskReport } from '../../../../core/tasks/task-report.ts';
import { reportLines } from './report.ts';

test('what agents and gates say can neither end a cell of the report nor steer the terminal', () => {
  const [spec] = parsePlan({ goal: 'One.\nTwo.\u001b[31m' }).tasks;
  const progress = firstProgress({ session: null });
  const task = { ...spec, id: 'id', state: 'asking', sessions: 'kept', agent: 'a', progress };
  const result = { verdict: 'fail', summary: 'a | b\n# c <b> [x](y) `z`\u0007', output: '', cut: 0, ms: 1 };
  const gates = [{ round: 1, iteration: 1, result, at: 0 }];
  const text = reportLines({ task, turns: [], gates, decisions: [], sessions: [] } as unknown as TaskReport).join('\n');
  expect(text).toContain('| 1.1 | fail | a \\| b # c \\<b> \\[x](y) \\`z\\` | 1 |');
  expect(text).toContain('> One.\n> Two.\n');
  // biome-ignore lint/suspicious/noControlCharactersInRegex: that is what is looked for
  expect(text).not.toMatch(/[\u0000-\u0009\u000b-\u001f]/);
});
