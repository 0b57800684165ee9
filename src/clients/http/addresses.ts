import { noSuchPermission, noSuchTurn, ThroughlineError } from '../../core/errors.ts';
import { isObject } from '../../core/turn/content.ts';

/* Ids in the path of a request, and directories on the machine of the server. */

const LONGEST = 512;

export function turnIn(id: string): { turn: string } {
  return { turn: checkSegment(id, noSuchTurn) };
}

export function permissionIn(id: string): { permission: string } {
  return { permission: checkSegment(id, noSuchPermission) };
}

/** Throws `missing` for a text that does not fit into a path: no id is like that. */
export function checkSegment(text: string, missing: (text: string) => ThroughlineError): string {
  const fits = text !== '' && text !== '.' && text !== '..' && text.length <= LONGEST && text.isWellFormed();
  if (!fits) throw missing(text);
  return text;
}

/** A relative path would mean another directory on the server. */
export function checkDirectory(cwd: string | undefined): void {
  if (cwd === undefined || isAbsolute(cwd)) return;
  throw new ThroughlineError('invalid', `The working directory "${cwd}" is not absolute.`, {
    hint: 'A server needs the whole path.',
  });
}

function isAbsolute(path: string): boolean {
  return /^(\/|[A-Za-z]:[\\/])/.test(path);
}

/**
 * A plan of tasks with absolute directories. `bases`: what they are relative to, the nearest first. The plan has been checked.
 * Throws `invalid` for a relative directory without a base.
 */
export function withAbsoluteDirectories(plan: unknown, bases: readonly string[]): unknown {
  if (Array.isArray(plan)) return plan.map((task) => taskWithAbsolute(task, bases));
  if (!isObject(plan) || !Array.isArray(plan.tasks)) return taskWithAbsolute(plan, bases);
  const { tasks, defaults } = plan;
  return {
    ...plan,
    tasks: tasks.map((task) => taskWithAbsolute(task, bases)),
    ...(defaults !== undefined && { defaults: taskWithAbsolute(defaults, bases) }),
  };
}

function taskWithAbsolute(task: unknown, bases: readonly string[]): unknown {
  if (!isObject(task) || typeof task.cwd !== 'string') return task;
  return { ...task, cwd: absolute(task.cwd, bases) };
}

/** The server resolves `.` and `..`. */
function absolute(cwd: string, [base, ...further]: readonly string[]): string {
  if (base === undefined || isAbsolute(cwd)) {
    checkDirectory(cwd);
    return cwd;
  }
  return absolute(`${base}/${cwd}`, further);
}
