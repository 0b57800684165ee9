import * as z from 'zod';
import { PLAN_SCHEMAS } from '../../core/tasks/task-plan.ts';
import { After, Day, LastTaskUsage, Limit, States, Wait } from '../parameters.ts';
import { named, namedObject } from '../registry.ts';
import type { OperationName } from '../routes.ts';
import { BudgetInput, Id } from '../values/common.ts';
import { Plan, Task, TaskEvent, TaskReport, TaskUsageRow } from '../values/task.ts';
import { PermissionMode } from '../values/turn.ts';
import { MEBIBYTE, type Operation } from './operation.ts';

const optional = z.exactOptional;
// Only described here. `parsePlan` checks them, and says where in the plan a value is wrong.
const NewTask = named('NewTask', z.unknown().meta(PLAN_SCHEMAS.task));
const PlanObject = z.unknown().meta(PLAN_SCHEMAS.plan);
const TaskPlan = named('TaskPlan', z.union([NewTask, z.array(NewTask).min(1), PlanObject]));

export const tasks = {
  listTasks: {
    summary:
      'Lists tasks, newest first. `state`: one or more, with commas. `before`: the id of the last task of the previous page; ' +
      'continue until a page is empty. Follow events after `seq` to miss nothing.',
    scope: 'read',
    query: z.strictObject({
      state: optional(States),
      milestone: optional(Id),
      limit: optional(Limit),
      before: optional(Id),
    }),
    answer: namedObject('Tasks', { tasks: z.array(Task), seq: z.int().min(0), logId: z.string() }),
  },
  addTasks: {
    summary:
      'Accepts one task, several, or a plan {tasks, defaults, parallel}, all or none, as in a task file. A command ' +
      'gate, a directory, a session to continue and `parallel` need the scope admin.',
    scope: 'prompt',
    body: namedObject('NewTasks', { plan: TaskPlan, requestId: optional(Id) }),
    mostBytes: 8 * MEBIBYTE,
    begins: true,
    status: 202,
    answer: namedObject('AddedTasks', { tasks: z.array(Task), duplicate: z.boolean() }),
  },
  followTasks: {
    summary:
      'Streams events of all tasks after a number (`after`, or Last-Event-ID), without gaps, and new ones as they come. ' +
      '`task`: only those of one task. 409 `log_changed`: there is no such event, or the log is not `log`.',
    scope: 'read',
    query: z.strictObject({ after: optional(After), log: optional(Id), task: optional(Id) }),
    stream: true,
    answer: TaskEvent,
  },
  taskUsage: {
    summary:
      'Returns usage by day (UTC) and task, newest first. `before`: the last row of the previous page, as DAY_TASK. ' +
      'Continue until a page is empty.',
    scope: 'read',
    query: z.strictObject({ since: optional(Day), limit: optional(Limit), before: optional(LastTaskUsage) }),
    answer: namedObject('TaskUsage', { usage: z.array(TaskUsageRow) }),
  },
  getTask: {
    summary: 'Returns one task, by its id, or the newest with this name.',
    scope: 'read',
    answer: Task,
  },
  reportTask: {
    summary: 'Returns the report of a task: turns, sessions, lock waits, gate results and decisions.',
    scope: 'read',
    answer: TaskReport,
  },
  cancelTask: {
    summary: 'Cancels a task, with its agent and its gate. A running one ends a little later.',
    scope: 'prompt',
    answer: Task,
  },
  retryTask: {
    summary: 'Retries a task that asks a person, has failed or was cancelled.',
    scope: 'prompt',
    body: namedObject('TaskRetry', {
      say: optional(z.string().min(1).max(100_000)),
      budget: optional(BudgetInput),
      maxIterations: optional(z.int().min(1).max(10_000)),
      permissions: optional(PermissionMode),
    }),
    begins: true,
    status: 202,
    answer: Task,
  },
  getPlan: {
    summary:
      'Returns the tasks that were added together, by their `planId` (the `requestId` of their addition, if it had one), and whether a ' +
      'person is needed: `state` is `running`, `needs_person` or `settled`; `needs` says what to do. `wait`: while it is running, waits for so ' +
      'many seconds at most.',
    scope: 'read',
    query: z.strictObject({ wait: optional(Wait) }),
    answer: Plan,
  },
} as const satisfies Partial<Record<OperationName, Operation>>;
