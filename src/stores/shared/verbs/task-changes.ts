import { type Task, type TaskEventKind, type TaskTurn, taskHasEnded } from '../../../core/tasks/task.ts';
import { checkDecision } from '../../../core/tasks/task-decision.ts';
import { firstProgress } from '../../../core/tasks/task-progress.ts';
import { addUsage, NO_USAGE } from '../../../core/turn/usage.ts';
import type { NewPlan, NewTask, TaskChange, TaskFence, TaskRetry } from '../../../ports/store/tasks.ts';
import {
  isBegun,
  payloadWithoutWords,
  repeatedTasks,
  retriedTask,
  type TaskRow,
  taskOf,
  taskSessionTaken,
  taskUnder,
  taskWithoutWords,
} from '../tasks.ts';
import { dayOf } from '../totals.ts';
import { sessionIdUsed } from '../turns.ts';
import { all, changed, insert, one, orTaken, run, type Steps, type StepTx } from './steps.ts';
import { appendTaskEvents, OF_PLAN, taskRow } from './task-board.ts';

const INSERT = `
  INSERT INTO tasks (owner, id, plan, plan_hash, place_in_plan, place, parallel, name, milestone, session, spec, progress, state,
    epoch, created_at)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?)`;
const SESSION_USED = 'SELECT 1 FROM sessions WHERE id = ? LIMIT 1';
const INSERT_AFTER = 'INSERT INTO task_after (task, first, owner) VALUES (?, ?, ?)';
const SAVE = 'UPDATE tasks SET progress = ?, gate = ? WHERE no = ?';
const LEAVE = `
  UPDATE tasks SET state = ?, worker = NULL, process = NULL, lease_end = NULL, ended_at = ?, cancel_by = NULL WHERE no = ?`;
const ASK_CANCEL = 'UPDATE tasks SET cancel_by = ? WHERE no = ? AND cancel_by IS NULL';
const AGAIN = 'UPDATE tasks SET state = ?, spec = ?, progress = ?, ended_at = NULL, cancel_by = NULL WHERE no = ?';
const NOT_DONE = `
  SELECT 1 FROM task_after a JOIN tasks f ON f.no = a.first WHERE a.task = ? AND f.state <> 'done' LIMIT 1`;
const WAITING = `
  SELECT t.* FROM task_after a JOIN tasks t ON t.no = a.task WHERE a.first = ? AND t.state = 'waiting' ORDER BY t.no`;
const QUEUE = "UPDATE tasks SET state = 'queued' WHERE no = ?";
const SPENT = 'SELECT turns, usage FROM task_usage WHERE owner = ? AND day = ? AND task = ?';
const SAVE_SPENT = `
  INSERT INTO task_usage (owner, day, task, turns, usage) VALUES (?, ?, ?, ?, ?)
  ON CONFLICT (owner, day, task) DO UPDATE SET turns = excluded.turns, usage = excluded.usage`;
/**
 * Tasks that worked in the conversation, or were judged in it. ?2 is the field as JSON writes it, between wildcards. A text does not match it, because
 * quotes inside of a text are escaped. The field is not read as JSON: PostgreSQL refuses JSON that contains a NUL.
 */
const OF_CONVERSATION = `
  SELECT * FROM tasks WHERE owner = ?1 AND (progress LIKE ?2 OR no IN (
    SELECT task FROM task_events WHERE owner = ?1 AND kind = 'task.turned' AND payload LIKE ?2))`;
const FORGET = `
  UPDATE tasks SET name = NULL, milestone = NULL, session = NULL, plan_hash = ?, spec = ?, progress = ? WHERE no = ?`;
const EVENTS = 'SELECT no, kind, payload FROM task_events WHERE task = ?';
const FORGET_EVENT = 'UPDATE task_events SET payload = ? WHERE no = ?';

/** `hash`: of the plan. */
export function* addTasks(
  tx: StepTx,
  owner: string,
  plan: NewPlan,
  hash: Uint8Array,
): Steps<{ tasks: Task[]; duplicate: boolean }> {
  const known = yield* all<TaskRow>(OF_PLAN, owner, plan.plan);
  if (known.length > 0) return { tasks: repeatedTasks(known, hash), duplicate: true };
  const numbers = new Map<string, number>();
  const tasks: Task[] = [];
  for (const [i, given] of plan.tasks.entries()) {
    const { no, task } = yield* addTask(tx, owner, plan, given, i, hash);
    numbers.set(task.id, no);
    tasks.push(task);
  }
  for (const { id, after } of plan.tasks) {
    for (const first of new Set(after)) {
      yield* run(INSERT_AFTER, numbers.get(id) ?? 0, numbers.get(first) ?? 0, owner);
    }
  }
  return { tasks, duplicate: false };
}

function* addTask(
  tx: StepTx,
  owner: string,
  { plan, place, parallel }: NewPlan,
  task: NewTask,
  i: number,
  hash: Uint8Array,
): Steps<{ no: number; task: Task }> {
  const { id, ...spec } = task;
  const { name, milestone, newSession, goal, agent } = task;
  if (newSession !== null && (yield* one(SESSION_USED, newSession)) !== undefined) throw sessionIdUsed(newSession);
  // Open tasks name each session once, an existing one or a new one.
  const session = newSession ?? task.session;
  const state = task.after.length > 0 ? 'waiting' : 'queued';
  const progress = firstProgress(task);
  const values = [owner, id, plan, hash, i, place, parallel, name, milestone, session];
  const bodies = [JSON.stringify(spec), JSON.stringify(progress), state, tx.now];
  const added = insert(INSERT, ...values, ...bodies);
  const no = yield* orTaken(tx, added, (cause) => taskSessionTaken(session, cause));
  const payload = { name, goal, milestone, agent, state } as const;
  yield* appendTaskEvents(tx, { no, id, owner }, { kind: 'task.added', payload });
  const begun = { cancelRequested: false, createdAt: tx.now, startedAt: null, endedAt: null };
  return { no, task: { id, owner, plan, place, ...spec, state, progress, ...begun } };
}

export function* commitTask(tx: StepTx, fence: TaskFence, change: TaskChange): Steps<Task> {
  const row = taskUnder(yield* taskRow(fence.owner, fence.task), fence);
  const { progress, state, gate, turns = [], events } = change;
  if (progress.decision !== null) checkDecision(progress.decision);
  const process = gate === undefined ? row.gate : gate && JSON.stringify(gate);
  const saved = { ...row, progress: JSON.stringify(progress) };
  yield* run(SAVE, saved.progress, process, row.no);
  for (const turn of turns) yield* countTurn(row, turn);
  yield* appendTaskEvents(tx, row, ...events);
  if (state === undefined) return taskOf(saved);
  const endedAt = taskHasEnded(state) ? tx.now : null;
  yield* run(LEAVE, state, endedAt, row.no);
  if (state === 'done') yield* queueNext(tx, row);
  if (state === 'cancelled') {
    yield* appendTaskEvents(tx, row, { kind: 'task.cancelled', payload: { by: row.cancel_by ?? row.owner } });
  }
  return taskOf({ ...saved, state, ended_at: endedAt, cancel_by: null });
}

function* queueNext(tx: StepTx, done: TaskRow): Steps<void> {
  for (const row of yield* all<TaskRow>(WAITING, done.no)) {
    if ((yield* one(NOT_DONE, row.no)) !== undefined) continue;
    yield* run(QUEUE, row.no);
    yield* appendTaskEvents(tx, row, { kind: 'task.queued', payload: { reason: 'The tasks it waited for are done.' } });
  }
}

function* countTurn({ owner, no }: TaskRow, turn: TaskTurn): Steps<void> {
  const day = dayOf(turn.endedAt);
  const before = yield* one<{ turns: number; usage: string }>(SPENT, owner, day, no);
  const usage = addUsage(before === undefined ? NO_USAGE : JSON.parse(before.usage), turn.usage);
  yield* run(SAVE_SPENT, owner, day, no, (before?.turns ?? 0) + 1, JSON.stringify(usage));
}

export function* cancelTask(tx: StepTx, owner: string, id: string, by: string): Steps<Task> {
  const row = yield* taskRow(owner, id);
  if (row.state === 'running' || isBegun(row)) {
    if ((yield* changed(ASK_CANCEL, by, row.no)) > 0) {
      yield* appendTaskEvents(tx, row, { kind: 'task.cancel_requested', payload: { by } });
    }
  } else if (!taskHasEnded(row.state)) {
    yield* run(LEAVE, 'cancelled', tx.now, row.no);
    yield* appendTaskEvents(tx, row, { kind: 'task.cancelled', payload: { by } });
  }
  return taskOf(yield* taskRow(owner, id));
}

export function* retryTask(tx: StepTx, owner: string, id: string, retry: TaskRetry): Steps<Task> {
  const row = yield* taskRow(owner, id);
  const { spec, progress } = retriedTask(row, retry);
  const state = (yield* one(NOT_DONE, row.no)) === undefined ? 'queued' : 'waiting';
  const again = changed(AGAIN, state, spec, progress, row.no);
  yield* orTaken(tx, again, (cause) => taskSessionTaken(row.session, cause));
  yield* appendTaskEvents(tx, row, { kind: 'task.retried', payload: { by: retry.by, say: retry.say } });
  return taskOf(yield* taskRow(owner, id));
}

/** Throws `conflict` for an open task. */
export function* checkTasksEnded(owner: string, conversation: string): Steps<void> {
  for (const row of yield* tasksOf(owner, conversation)) taskWithoutWords(row);
}

/** Erases the texts of these tasks. Throws `conflict` for an open task. */
export function* eraseTasks(owner: string, conversation: string): Steps<void> {
  for (const row of yield* tasksOf(owner, conversation)) {
    const { spec, progress } = taskWithoutWords(row);
    yield* run(FORGET, new Uint8Array(0), spec, progress, row.no);
    for (const event of yield* all<{ no: number; kind: TaskEventKind; payload: string }>(EVENTS, row.no)) {
      const scrubbed = payloadWithoutWords(event.kind, event.payload);
      if (scrubbed !== null) yield* run(FORGET_EVENT, scrubbed, event.no);
    }
  }
}

function tasksOf(owner: string, conversation: string): Steps<TaskRow[]> {
  return all<TaskRow>(OF_CONVERSATION, owner, `%"conversation":${JSON.stringify(conversation)}%`);
}
