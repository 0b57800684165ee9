import { ThroughlineError } from '../errors.ts';
import { shown } from '../input/arguments.ts';
import { checkKey } from '../input/names.ts';
import { findUnpaired, UNPAIRED_HINT, unpairedIn } from '../input/well-formed.ts';
import { NO_BUDGET, parseBudget } from '../limits/budget.ts';
import { isObject } from '../turn/content.ts';
import { PERMISSION_MODES } from '../turn/turn.ts';
import { type Gate, SESSION_MODES, type TaskSpec } from './task.ts';
import { checkTogether } from './task-together.ts';

/** Tasks that are added together, all or none of them. */
interface TaskPlan {
  /** How many of these may run at once; null: only the limit of the data home applies. */
  readonly parallel: number | null;
  readonly tasks: readonly TaskSpec[];
}

/** The place of a value in the plan: `['tasks', 2, 'gate']`. */
export type PlanPath = readonly (string | number)[];
/** The place in words: `tasks.yaml, line 12: `. */
export type Locate = (path: PlanPath) => string;

const LONGEST_TEXT = 100_000;
/** Up to four bytes a character; the operating system takes 128 KiB in one argument. */
const LONGEST_COMMAND = 30_000;
const LONGEST_PATH = 4_096;
const LONGEST_MILESTONE = 400;
/** All are stored in one transaction, and everything else waits for it. */
const MOST_TASKS = 1_000;
const MOST_WAITS = 5_000;
const DEFAULT_ITERATIONS = 10;
const DEFAULT_TIMEOUT_S = 600;

const OF_TASK = [
  'name',
  'goal',
  'gate',
  'milestone',
  'agent',
  'sessions',
  'session',
  'maxIterations',
  'budget',
  'after',
  'retryInterrupted',
  'cwd',
  'sandbox',
  'permissions',
] as const;
/** Fields of a single task, which cannot have a default. */
const OWN = ['name', 'goal', 'session', 'after'];

/** Checks a plan from a file or a caller: one task, a list of them, or `{tasks, defaults, parallel}`. Throws `invalid`. */
export function parsePlan(input: unknown, locate: Locate = inWords): TaskPlan {
  const reader = new PlanReader((path) => locate(asGiven(input, path)));
  if (Array.isArray(input)) return reader.plan({ tasks: input });
  return reader.plan(isObject(input) && !('tasks' in input) ? { tasks: [input] } : input);
}

/** Turns a path of `{tasks: […]}` into the path in what the caller gave. */
function asGiven(plan: unknown, path: PlanPath): PlanPath {
  if (Array.isArray(plan)) return path.slice(1);
  return isObject(plan) && !('tasks' in plan) ? path.slice(2) : path;
}

export function inWords(path: PlanPath): string {
  const name = path.map((part) => (typeof part === 'number' ? `[${part}]` : `.${part}`)).join('');
  return name === '' ? '' : `${name.replace(/^\./, '')}: `;
}

/** The place of a task's field in the plan as the caller gave it. */
export function placesIn(plan: unknown, locate: Locate): (index: number, field: keyof TaskSpec) => string {
  return (index, field) => locate(asGiven(plan, ['tasks', index, field]));
}

class PlanReader {
  readonly #locate: Locate;

  constructor(locate: Locate) {
    this.#locate = locate;
  }

  plan(input: unknown): TaskPlan {
    if (!isObject(input)) throw this.fault([], 'A plan must be an object with "tasks".');
    this.#onlyKnown(input, ['tasks', 'defaults', 'parallel'], []);
    const { tasks, defaults = {}, parallel } = input;
    if (!Array.isArray(tasks) || tasks.length === 0)
      throw this.fault(['tasks'], '"tasks" must be a list of at least one task.');
    this.#notTooMany(tasks);
    if (!isObject(defaults)) throw this.fault(['defaults'], '"defaults" must be an object.');
    this.#onlyKnown(
      defaults,
      OF_TASK.filter((name) => !OWN.includes(name)),
      ['defaults'],
    );
    const specs = tasks.map((task, i) => this.#task(task, defaults, ['tasks', i]));
    checkTogether(specs, (i, field, what, hint) => this.fault(['tasks', i, field], what, hint));
    return { parallel: parallel == null ? null : this.#number(parallel, ['parallel'], 1, 1_000), tasks: specs };
  }

  #notTooMany(tasks: readonly unknown[]): void {
    const several = 'Split it into several plans.';
    if (tasks.length > MOST_TASKS) {
      throw this.fault(
        ['tasks'],
        `A plan may have at most ${MOST_TASKS} tasks; this one has ${tasks.length}.`,
        several,
      );
    }
    let waits = 0;
    for (const task of tasks) if (isObject(task) && Array.isArray(task.after)) waits += task.after.length;
    if (waits <= MOST_WAITS) return;
    const what = `A plan may have at most ${MOST_WAITS} names in all "after" lists; this one has ${waits}.`;
    throw this.fault(['tasks'], what, several);
  }

  #task(input: unknown, defaults: Record<string, unknown>, path: PlanPath): TaskSpec {
    if (!isObject(input)) throw this.fault(path, `A task must be an object, not ${shown(input)}.`);
    this.#onlyKnown(input, OF_TASK, path);
    const place = (name: string) => (input[name] === undefined ? ['defaults', name] : [...path, name]);
    /** The value of the task, else the default; null: neither, or the task sets it to null. */
    const get = <T>(name: (typeof OF_TASK)[number], read: (value: unknown, at: PlanPath) => T): T | null => {
      const value = input[name] === undefined ? defaults[name] : input[name];
      return value === undefined || value === null ? null : read(value, place(name));
    };
    const name = (value: unknown, at: PlanPath) => this.#name(value, at);
    return {
      name: get('name', name),
      goal: this.#goal(input.goal, [...path, 'goal']),
      gate: get('gate', (value, at) => this.#gate(value, at)),
      milestone: get('milestone', (value, at) => this.#milestone(value, at)),
      agent: get('agent', name),
      sessions: get('sessions', (value, at) => this.#oneOf(value, SESSION_MODES, at)),
      session: get('session', name),
      maxIterations: get('maxIterations', (value, at) => this.#number(value, at, 1, 10_000)) ?? DEFAULT_ITERATIONS,
      budget: get('budget', (value, at) => this.#budget(value, at)) ?? NO_BUDGET,
      after: get('after', (value, at) => this.#names(value, at)) ?? [],
      retryInterrupted: get('retryInterrupted', (value, at) => this.#number(value, at, 0, 100)) ?? 0,
      cwd: get('cwd', (value, at) => this.#text(value, at, 'A directory', LONGEST_PATH)),
      sandbox: get('sandbox', name),
      permissions: get('permissions', (value, at) => this.#oneOf(value, PERMISSION_MODES, at)) ?? 'deny',
    };
  }

  #goal(value: unknown, path: PlanPath): string {
    if (typeof value !== 'string' || value.trim() === '')
      throw this.fault(path, 'A task needs a goal, which is a non-empty text.');
    return this.#text(value, path, 'The goal').trimEnd();
  }

  #gate(value: unknown, path: PlanPath): Gate {
    if (typeof value === 'string') return this.#command({ command: value }, path);
    if (!isObject(value) || 'command' in value === 'agent' in value) {
      throw this.fault(path, `A gate must be a command, {command, timeout} or {agent, ask}, not ${shown(value)}.`);
    }
    if ('command' in value) return this.#command(value, path);
    this.#onlyKnown(value, ['agent', 'ask'], path);
    const ask = this.#text(value.ask ?? 'The goal is reached, completely.', [...path, 'ask'], 'What a judge is asked');
    return { kind: 'agent', agent: this.#name(value.agent, [...path, 'agent']), ask };
  }

  #command(value: Record<string, unknown>, path: PlanPath): Gate {
    this.#onlyKnown(value, ['command', 'timeout'], path);
    const seconds = this.#number(value.timeout ?? DEFAULT_TIMEOUT_S, [...path, 'timeout'], 1, 86_400);
    const at = [...path, 'command'];
    const command = this.#text(value.command, at, 'A command', LONGEST_COMMAND);
    if (command.includes('\0')) throw this.fault(at, 'A command must not contain zero bytes.');
    return { kind: 'command', command, timeoutMs: seconds * 1_000 };
  }

  #budget(value: unknown, path: PlanPath) {
    const budget = parseBudget(value);
    if (budget !== null) return budget;
    throw this.fault(path, `A budget needs a unit: "2.50 USD" or "50000 tokens", not ${shown(value)}.`);
  }

  #names(value: unknown, path: PlanPath): string[] {
    const list = Array.isArray(value) ? value : [value];
    return list.map((one, i) => this.#name(one, Array.isArray(value) ? [...path, i] : path));
  }

  #name(value: unknown, path: PlanPath): string {
    try {
      return checkKey(value, String(path.findLast((part) => typeof part === 'string')));
    } catch (error) {
      throw this.fault(path, (error as Error).message);
    }
  }

  /** It becomes part of a conversation's key, whose length is limited. */
  #milestone(value: unknown, path: PlanPath): string {
    const name = this.#name(value, path);
    if (name.length <= LONGEST_MILESTONE) return name;
    throw this.fault(path, `A milestone may have at most ${LONGEST_MILESTONE} characters.`);
  }

  #text(value: unknown, path: PlanPath, what: string, longest = LONGEST_TEXT): string {
    if (typeof value !== 'string' || value.trim() === '') {
      throw this.fault(path, `"${path.at(-1)}" must be a non-empty text, not ${shown(value)}.`);
    }
    const unpaired = findUnpaired(value);
    if (unpaired !== null) throw this.fault(path, unpairedIn(what, unpaired), UNPAIRED_HINT);
    if (value.length <= longest) return value;
    throw this.fault(
      path,
      `${what} may have at most ${longest} characters.`,
      'Put longer text into a file, and name the file.',
    );
  }

  #number(value: unknown, path: PlanPath, least: number, most: number): number {
    if (typeof value === 'number' && Number.isSafeInteger(value) && value >= least && value <= most) return value;
    throw this.fault(path, `"${path.at(-1)}" must be a whole number from ${least} to ${most}, not ${shown(value)}.`);
  }

  #oneOf<T extends string>(value: unknown, known: readonly T[], path: PlanPath): T {
    const found = known.find((one) => one === value);
    if (found !== undefined) return found;
    throw this.fault(path, `"${path.at(-1)}" must be one of ${known.join(', ')}, not ${shown(value)}.`);
  }

  #onlyKnown(value: Record<string, unknown>, known: readonly string[], path: PlanPath): void {
    const strange = Object.keys(value).find((name) => !known.includes(name));
    if (strange === undefined) return;
    throw this.fault([...path, strange], `Unknown field "${strange}".`, `Known fields: ${known.join(', ')}.`);
  }

  fault(path: PlanPath, what: string, hint = 'docs/tasks.md lists every field, with an example.'): ThroughlineError {
    return new ThroughlineError('invalid', `${this.#locate(path)}${what}`, { hint });
  }
}
