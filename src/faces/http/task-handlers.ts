import { inWords, parsePlan, placesIn } from '../../core/tasks/task-plan.ts';
import type { AnswerOf, OPERATIONS } from '../../wire/operations.ts';
import { checkScope } from './authenticate.ts';
import type { Feed } from './event-stream.ts';
import type { Call } from './handlers.ts';
import type { Principal } from './principal.ts';
import { checkWholePath } from './whole-path.ts';

type Operations = typeof OPERATIONS;
type TaskOperation = Extract<keyof Operations, `${string}Task${string}` | 'taskUsage'>;
type Answer<N extends TaskOperation> = AnswerOf<Operations[N]>;

/** What each operation of tasks does. */
export const TASK_HANDLERS: {
  [N in TaskOperation]: (call: Call<N>) => N extends 'followTasks' ? Promise<Feed> : Promise<Answer<N>>;
} = {
  async listTasks({ tasks, query: { state, ...page } }) {
    const seq = await tasks.lastSeq(); // before they are read: what happens in between is then followed, and not missed
    return { tasks: await tasks.list({ ...page, ...(state && { states: state }) }), seq } as Answer<'listTasks'>;
  },
  async addTasks({ tasks, principal, body: { plan, requestId } }) {
    checkMachine(principal, plan);
    return tasks.add(plan, requestId === undefined ? {} : { requestId }) as Promise<Answer<'addTasks'>>;
  },
  async followTasks({ tasks, query, lastEventId }) {
    const after = lastEventId ?? query.after ?? 0;
    const only = query.task === undefined ? {} : { task: (await tasks.task(query.task)).id };
    return { numbered: true, values: (signal) => tasks.follow({ after, signal, ...only }) };
  },
  taskUsage: async ({ tasks, query }) => ({ usage: await tasks.usage(query) }),
  getTask: ({ tasks, params }) => tasks.task(params.task) as Promise<Answer<'getTask'>>,
  reportTask: ({ tasks, params }) => tasks.report(params.task) as Promise<Answer<'reportTask'>>,
  cancelTask: ({ tasks, params }) => tasks.cancel(params.task) as Promise<Answer<'cancelTask'>>,
  retryTask: ({ tasks, params, body }) => tasks.retry(params.task, body) as Promise<Answer<'retryTask'>>,
};

/** A command is run as we are, whatever the agent may do; directories, native sessions and how much runs at once are the machine's. */
function checkMachine(principal: Principal, plan: unknown): void {
  const { tasks, parallel } = parsePlan(plan);
  if (tasks.some(({ gate }) => gate?.kind === 'command')) checkScope(principal, 'admin', 'A gate that is a command');
  if (tasks.some(({ cwd }) => cwd !== null)) checkScope(principal, 'admin', 'Naming a directory');
  if (tasks.some(({ session }) => session !== null)) checkScope(principal, 'admin', 'Naming a native session');
  if (parallel !== null) checkScope(principal, 'admin', 'Setting how many tasks run at once');
  const at = placesIn(plan, inWords);
  for (const [i, { cwd }] of tasks.entries()) if (cwd !== null) checkWholePath(cwd, at(i, 'cwd'));
}
