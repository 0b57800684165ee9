import { checkEventNumber } from '../../core/event.ts';
import { given } from '../../core/input/arguments.ts';
import type { Scope } from '../../core/key.ts';
import type { Gate } from '../../core/tasks/task.ts';
import { inWords, parsePlan, placesIn, type TaskPlan } from '../../core/tasks/task-plan.ts';
import type { OperationName } from '../../wire/routes.ts';
import { checkScope, type Principal } from './access/authenticate.ts';
import { checkAbsolute, type Handler } from './call.ts';

type TaskOperation = Extract<OperationName, `${string}Task${string}` | 'taskUsage' | 'getPlan'>;

/** What each operation of tasks does with them. */
export const TASK_HANDLERS: { [N in TaskOperation]: Handler<N> } = {
  async listTasks({ tasks, query: { state, ...page } }) {
    const seq = await tasks.lastSeq(); // before the tasks are read, so that following misses nothing
    const logId = await tasks.logId();
    return { tasks: await tasks.list({ ...page, ...(state && { states: state }) }), seq, logId };
  },
  async addTasks({ tasks, principal, body: { plan, requestId } }) {
    checkPlan(principal, plan);
    return tasks.add(plan as TaskPlan, given({ requestId }));
  },
  async followTasks({ tasks, query, lastEventId }) {
    const after = lastEventId ?? query.after ?? 0;
    const only = query.task === undefined ? {} : { task: (await tasks.task(query.task)).id };
    const [lastSeq, logId] = await Promise.all([tasks.lastSeq(), tasks.logId()]);
    checkEventNumber({ after, log: query.log }, { lastSeq, logId });
    return { numbered: true, log: logId, values: (signal) => tasks.follow({ after, signal, ...only }) };
  },
  taskUsage: async ({ tasks, query }) => ({ usage: await tasks.usage(query) }),
  getTask: ({ tasks, params }) => tasks.task(params.task),
  reportTask: ({ tasks, params }) => tasks.report(params.task),
  getPlan({ tasks, params, query: { wait = 0 }, waiting }) {
    if (wait === 0) return tasks.plan(params.plan);
    return waiting((signal) => tasks.plan(params.plan, { waitMs: wait * 1_000, signal }));
  },
  cancelTask: ({ tasks, params }) => tasks.cancel(params.task),
  retryTask: ({ tasks, params, body }) => tasks.retry(params.task, body),
};

/** What a gate of each kind needs. A command runs as the user of the server; a judge is an agent, as the one that works on the task. */
const GATE_NEEDS: { readonly [K in Gate['kind']]: { readonly scope: Scope; readonly what: string } } = {
  command: { scope: 'admin', what: 'A command gate' },
  agent: { scope: 'prompt', what: 'An agent as a gate' },
};

/** Directories, native sessions and `parallel` need the scope `admin`. */
function checkPlan(principal: Principal, plan: unknown): void {
  const { tasks, parallel } = parsePlan(plan);
  for (const { gate } of tasks) {
    if (gate === null) continue;
    const { scope, what } = GATE_NEEDS[gate.kind];
    checkScope(principal, scope, what);
  }
  if (tasks.some(({ cwd }) => cwd !== null)) checkScope(principal, 'admin', 'Naming a directory');
  if (tasks.some(({ session }) => session !== null)) checkScope(principal, 'admin', 'Naming a native session');
  if (parallel !== null) checkScope(principal, 'admin', 'Setting how many tasks run at once');
  const at = placesIn(plan, inWords);
  for (const [i, { cwd }] of tasks.entries()) if (cwd !== null) checkAbsolute(cwd, at(i, 'cwd'));
}
