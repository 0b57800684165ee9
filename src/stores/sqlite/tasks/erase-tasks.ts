import { ThroughlineError } from '../../../core/errors.ts';
import {
  ERASED,
  type Task,
  type TaskEventKind,
  type TaskEventPayloads,
  type TaskProgress,
  taskHasEnded,
} from '../../../core/tasks/task.ts';
import type { Tx } from '../file/write-queue.ts';
import type { TaskRow } from './task-board.ts';

/** Tasks that worked in the conversation, or were judged in it. */
const OF_CONVERSATION = `
  SELECT * FROM tasks WHERE owner = ?1 AND (json_extract(progress, '$.conversation') = ?2 OR no IN (
    SELECT task FROM task_events
    WHERE owner = ?1 AND kind = 'task.turned' AND json_extract(payload, '$.conversation') = ?2))`;
const FORGET = `
  UPDATE tasks SET name = NULL, milestone = NULL, session = NULL, plan_hash = x'', spec = ?, progress = ? WHERE no = ?`;
const EVENTS = 'SELECT no, kind, payload FROM task_events WHERE task = ?';
const FORGET_EVENT = 'UPDATE task_events SET payload = ? WHERE no = ?';

/** Goals and gate outputs are prompts, so they are erased with the conversation. Throws `conflict` for an open task. */
export function eraseTasks(tx: Tx, owner: string, conversation: string): void {
  for (const row of tx.db.all<TaskRow>(OF_CONVERSATION, owner, conversation)) {
    if (!taskHasEnded(row.state)) {
      throw new ThroughlineError('conflict', `The task ${row.id}, which works in this conversation, is ${row.state}.`, {
        hint: 'Cancel the task, and erase the conversation when it has ended.',
      });
    }
    const spec = { ...JSON.parse(row.spec), ...WITHOUT_WORDS };
    const progress = withoutWords(JSON.parse(row.progress));
    tx.db.run(FORGET, JSON.stringify(spec), JSON.stringify(progress), row.no);
    forgetEvents(tx, row.no);
  }
}

const WITHOUT_WORDS: Partial<Task> = {
  goal: ERASED,
  name: null,
  gate: null,
  milestone: null,
  session: null,
  cwd: null,
  sandbox: null,
};

function withoutWords(progress: TaskProgress): TaskProgress {
  const { decision } = progress;
  return { ...progress, feedback: null, decision: decision && { ...decision, reason: ERASED } };
}

type Scrub = { [K in TaskEventKind]?: (payload: TaskEventPayloads[K]) => TaskEventPayloads[K] };

/** Removes the texts from an event. */
const SCRUB: Scrub = {
  'task.added': (payload) => ({ ...payload, name: null, goal: ERASED, milestone: null }),
  'task.turned': (payload) => {
    const { failure, denied = [] } = payload;
    return {
      ...payload,
      failure: failure && { code: failure.code, message: ERASED },
      denied: denied.map((one) => ({ ...one, title: ERASED })),
    };
  },
  'task.gated': (payload) => ({ ...payload, result: { ...payload.result, summary: ERASED, output: '' } }),
  'task.decided': (payload) => ({ ...payload, reason: ERASED }),
  'task.retried': (payload) => ({ ...payload, say: payload.say === null ? null : ERASED }),
};

function forgetEvents({ db }: Tx, task: number): void {
  for (const { no, kind, payload } of db.all<{ no: number; kind: TaskEventKind; payload: string }>(EVENTS, task)) {
    const scrub = SCRUB[kind] as ((payload: unknown) => unknown) | undefined;
    if (scrub !== undefined) db.run(FORGET_EVENT, JSON.stringify(scrub(JSON.parse(payload))), no);
  }
}
