import type { TaskPlan } from '../../../src/core/tasks/task-plan.ts';
import { assembleTasks } from '../harness/assemble.ts';
import { input, onCommand, ready } from '../harness/commands.ts';
import { hookedTasks, type TaskHook } from '../harness/task-hook.ts';

/** Adds a task and works on it, until its hook kills it. */
const { home, mark, hook, plan } = input<{ home: string; mark: string; hook: TaskHook; plan: TaskPlan }>();

onCommand(() => {});
const around = (store: Parameters<typeof hookedTasks>[0]) => hookedTasks(store, hook);
const { tasks } = await assembleTasks({ home, mark, engine: { maxWarm: 0 }, around });
ready();
await tasks.add(plan, { requestId: 'once' });
