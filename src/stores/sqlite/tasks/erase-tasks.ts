import type { TaskEventKind } from '../../../core/tasks/task.ts';
import { payloadWithoutWords, type TaskRow, taskWithoutWords } from '../../shared/tasks.ts';
import type { Tx } from '../file/write-queue.ts';

/** Tasks that worked in the conversation, or were judged in it. */
const OF_CONVERSATION = `
  SELECT * FROM tasks WHERE owner = ?1 AND (json_extract(progress, '$.conversation') = ?2 OR no IN (
    SELECT task FROM task_events
    WHERE owner = ?1 AND kind = 'task.turned' AND json_extract(payload, '$.conversation') = ?2))`;
const FORGET = `
  UPDATE tasks SET name = NULL, milestone = NULL, session = NULL, plan_hash = x'', spec = ?, progress = ? WHERE no = ?`;
const EVENTS = 'SELECT no, kind, payload FROM task_events WHERE task = ?';
const FORGET_EVENT = 'UPDATE task_events SET payload = ? WHERE no = ?';

/** Throws `conflict` for an open task. */
export function eraseTasks(tx: Tx, owner: string, conversation: string): void {
  for (const row of tx.db.all<TaskRow>(OF_CONVERSATION, owner, conversation)) {
    const { spec, progress } = taskWithoutWords(row);
    tx.db.run(FORGET, spec, progress, row.no);
    forgetEvents(tx, row.no);
  }
}

function forgetEvents({ db }: Tx, task: number): void {
  for (const { no, kind, payload } of db.all<{ no: number; kind: TaskEventKind; payload: string }>(EVENTS, task)) {
    const scrubbed = payloadWithoutWords(kind, payload);
    if (scrubbed !== null) db.run(FORGET_EVENT, scrubbed, no);
  }
}
