import { expect } from 'vitest';
import { promptText } from '../../../src/core/turn/content.ts';
import type { Task, Throughline } from '../../../src/index.ts';

/** The only task of the list. */
export function only(tasks: readonly Task[]): Task {
  expect(tasks).toHaveLength(1);
  return tasks[0] as Task;
}

/** The prompts of a task that has its own conversation. */
export async function promptsOf(tl: Throughline, task: Task): Promise<string[]> {
  return (await tl.engine.turns(`task/${task.id}`)).map(({ prompt }) => promptText(prompt));
}

export const reportLine = ({ decision, code }: { decision: string; code: string }) => `${decision} ${code}`;
