import { isObject } from '../../core/content.ts';
import { checkDirectory, isWhole } from './addresses.ts';

/**
 * A plan whose directories are whole paths: a server has a working directory of its own. `bases`: what they are relative to,
 * the nearest first. The plan has been checked. Throws `invalid` for a directory that is relative to nothing.
 */
export function withWholeDirectories(plan: unknown, bases: readonly string[]): unknown {
  if (Array.isArray(plan)) return plan.map((task) => inOne(task, bases));
  if (!isObject(plan) || !Array.isArray(plan.tasks)) return inOne(plan, bases);
  const { tasks, defaults } = plan;
  return {
    ...plan,
    tasks: tasks.map((task) => inOne(task, bases)),
    ...(defaults !== undefined && { defaults: inOne(defaults, bases) }),
  };
}

function inOne(task: unknown, bases: readonly string[]): unknown {
  if (!isObject(task) || typeof task.cwd !== 'string') return task;
  return { ...task, cwd: whole(task.cwd, bases) };
}

/** What is left in it of dots is the server's to resolve. */
function whole(cwd: string, [base, ...further]: readonly string[]): string {
  if (base === undefined || isWhole(cwd)) {
    checkDirectory(cwd);
    return cwd;
  }
  return whole(`${base}/${cwd}`, further);
}
