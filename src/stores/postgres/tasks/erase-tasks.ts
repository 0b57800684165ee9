import type { TaskEventKind } from '../../../core/tasks/task.ts';
import { payloadWithoutWords, type TaskRow, taskWithoutWords } from '../../shared/tasks.ts';
import type { Tx } from '../server/access.ts';
import type { Sql } from '../server/connect.ts';
import { alone } from './task-board.ts';

/**
 * Tasks that worked in the conversation, or were judged in it. $2 is the field as JSON writes it: inside of a text its quotes would be
 * escaped. PostgreSQL refuses to read a field of JSON with a NUL anywhere in it.
 */
const OF_CONVERSATION = `
  SELECT * FROM tasks WHERE owner = $1 AND (position($2 IN progress) > 0 OR no IN (
    SELECT task FROM task_events WHERE owner = $1 AND kind = 'task.turned' AND position($2 IN payload) > 0))`;
const FORGET = `
  UPDATE tasks SET name = NULL, milestone = NULL, session = NULL, plan_hash = '', spec = $1, progress = $2 WHERE no = $3`;
const EVENTS = 'SELECT no, kind, payload FROM task_events WHERE task = $1';
const FORGET_EVENT = 'UPDATE task_events SET payload = $1 WHERE no = $2';

/** Throws `conflict` for an open task. */
export async function checkTasksEnded(sql: Sql, owner: string, conversation: string): Promise<void> {
  for (const row of await tasksOf(sql, owner, conversation)) taskWithoutWords(row);
}

/** The same. Called last: nobody else changes tasks until the transaction ends. */
export const eraseTasks = alone(async (tx: Tx, owner: string, conversation: string): Promise<void> => {
  for (const row of await tasksOf(tx.sql, owner, conversation)) {
    const { spec, progress } = taskWithoutWords(row);
    tx.sql.run(FORGET, spec, progress, row.no);
    await forgetEvents(tx, row.no);
  }
});

async function forgetEvents({ sql }: Tx, task: number): Promise<void> {
  for (const { no, kind, payload } of await sql.all<{ no: number; kind: TaskEventKind; payload: string }>(
    EVENTS,
    task,
  )) {
    const scrubbed = payloadWithoutWords(kind, payload);
    if (scrubbed !== null) sql.run(FORGET_EVENT, scrubbed, no);
  }
}

function tasksOf(sql: Sql, owner: string, conversation: string): Promise<TaskRow[]> {
  return sql.all<TaskRow>(OF_CONVERSATION, owner, `"conversation":${JSON.stringify(conversation)}`);
}
