import type { TaskChange, TaskStore } from '../../../src/ports/store/tasks.ts';
import type { Store } from '../../../src/ports/store.ts';

/** Kills the process at one exact step of a task: right before or right after a verb of its store is called. */
export interface TaskHook {
  readonly verb: 'add' | 'claim' | 'commit';
  /** For a commit: it has an event of this kind; or `gate`: it records the process of a gate. */
  readonly what?: string;
  readonly side: 'before' | 'after';
  /** At which such call, from 1. */
  readonly call: number;
}

export function hookedTasks(store: Store, hook: TaskHook): Store {
  let calls = 0;
  const tasks = new Proxy(store.tasks, {
    get(target, name) {
      const verb = target[name as keyof TaskStore] as (...args: unknown[]) => Promise<unknown>;
      if (name !== hook.verb) return verb;
      return async (...args: unknown[]) => {
        const here = matches(hook, args) && ++calls === hook.call;
        if (here && hook.side === 'before') process.kill(process.pid, 'SIGKILL');
        const result = await verb.apply(target, args);
        if (here && hook.side === 'after') process.kill(process.pid, 'SIGKILL');
        return result;
      };
    },
  });
  return new Proxy(store, {
    get(target, name) {
      if (name === 'tasks') return tasks;
      const value = target[name as keyof Store];
      return typeof value === 'function' ? (value as (...args: unknown[]) => unknown).bind(target) : value;
    },
  });
}

function matches({ verb, what }: TaskHook, args: readonly unknown[]): boolean {
  if (verb !== 'commit') return true;
  const { events, gate } = args[1] as TaskChange;
  return what === 'gate' ? gate != null : events.some(({ kind }) => kind === what);
}
