import * as z from 'zod';
import { After, Day, LastTaskUsage, Limit, States } from '../parameters.ts';
import { named } from '../registry.ts';
import { Id } from '../values/common.ts';
import { Task, TaskEvent, TaskReport, TaskUsageRow } from '../values/task.ts';
import { MEBIBYTE, type Operation } from './operation.ts';

const optional = z.exactOptional;
const Amounts = z.strictObject({ usd: optional(z.number()), tokens: optional(z.number()) });
const inOne = { params: z.strictObject({ task: Id }) } as const;

export const tasks = {
  listTasks: {
    method: 'GET',
    path: '/tasks',
    summary:
      'Tasks, the newest first; `state` may be several, with commas; `before` is the id of the last one of the page before: go ' +
      'on until one is empty. Whoever follows after `seq` misses nothing that happens to them.',
    scope: 'read',
    query: z.strictObject({
      state: optional(States),
      milestone: optional(Id),
      limit: optional(Limit),
      before: optional(Id),
    }),
    status: 200,
    answer: named('Tasks', z.strictObject({ tasks: z.array(Task), seq: z.int().min(0) })),
  },
  addTasks: {
    method: 'POST',
    path: '/tasks',
    summary:
      'Accepts one task, several, or a plan {tasks, defaults, parallel}, all or none, as in a task file. A gate ' +
      'that is a command, a directory, a native session and `parallel` take the scope admin.',
    scope: 'prompt',
    body: named('NewTasks', z.strictObject({ plan: z.unknown(), requestId: optional(Id) })),
    mostBytes: 8 * MEBIBYTE,
    begins: true,
    status: 202,
    answer: named('AddedTasks', z.strictObject({ tasks: z.array(Task), duplicate: z.boolean() })),
  },
  // Before those of one task: an address is looked for in this order.
  followTasks: {
    method: 'GET',
    path: '/tasks/events',
    summary:
      'Events of all tasks after a number (`after`, or Last-Event-ID), without gaps, and then as they come: a board. With ' +
      '`task`, those of that one alone.',
    scope: 'read',
    query: z.strictObject({ after: optional(After), task: optional(Id) }),
    stream: true,
    status: 200,
    answer: TaskEvent,
  },
  taskUsage: {
    method: 'GET',
    path: '/tasks/usage',
    summary:
      'What tasks have spent, by day (UTC) and task, newest first; `before` is the last row of the page before, as DAY_TASK: go ' +
      'on until one is empty.',
    scope: 'read',
    query: z.strictObject({ since: optional(Day), limit: optional(Limit), before: optional(LastTaskUsage) }),
    status: 200,
    answer: named('TaskUsage', z.strictObject({ usage: z.array(TaskUsageRow) })),
  },
  getTask: {
    method: 'GET',
    path: '/tasks/{task}',
    summary: 'One task, by its id, or the newest that has this name.',
    scope: 'read',
    ...inOne,
    status: 200,
    answer: Task,
  },
  reportTask: {
    method: 'GET',
    path: '/tasks/{task}/report',
    summary: 'How a task went: turns, sessions, lock waits, what its gate said, and every decision.',
    scope: 'read',
    ...inOne,
    status: 200,
    answer: TaskReport,
  },
  cancelTask: {
    method: 'POST',
    path: '/tasks/{task}/cancel',
    summary: 'Asks a task to stop, with its agent and its gate; a running one ends a little later.',
    scope: 'prompt',
    ...inOne,
    status: 200,
    answer: Task,
  },
  retryTask: {
    method: 'POST',
    path: '/tasks/{task}/retry',
    summary: 'Goes on with a task that asks, has failed or was cancelled.',
    scope: 'prompt',
    ...inOne,
    body: named(
      'TaskRetry',
      z.strictObject({
        say: optional(z.string().min(1).max(100_000)),
        budget: optional(z.union([z.string().min(1).max(100), Amounts])),
        maxIterations: optional(z.int().min(1).max(10_000)),
      }),
    ),
    begins: true,
    status: 202,
    answer: Task,
  },
} as const satisfies Record<string, Operation>;
