import { ThroughlineError } from '../errors.ts';
import { shown } from '../input/arguments.ts';
import { checkKey } from '../input/names.ts';
import {
  about,
  dotted,
  either,
  type Input,
  list,
  type Output,
  object,
  oneOf,
  orNull,
  type Path,
  type Report,
  required,
  type Schema,
  text,
  whole,
} from '../input/schema.ts';
import { findUnpaired, UNPAIRED_HINT, unpairedIn } from '../input/well-formed.ts';
import { BUDGET, NO_BUDGET, parseBudget } from '../limits/budget.ts';
import { isObject } from '../turn/content.ts';
import { PERMISSION_MODES } from '../turn/turn.ts';
import { type Gate, SESSION_MODES, type TaskSpec } from './task.ts';
import { checkTogether } from './task-together.ts';

/** A checked plan: tasks that are added together, all or none of them. */
interface CheckedPlan {
  /** How many of these may run at once; null: only the limit of the data home applies. */
  readonly parallel: number | null;
  readonly tasks: readonly TaskSpec[];
}

/** Where a value is in the plan: `['tasks', 2, 'gate']`. */
export type PlanPath = Path;
/** Where it is, in words: `tasks.yaml, line 12: `. */
export type Locate = (path: PlanPath) => string;

const LONGEST_TEXT = 100_000;
/** Up to four bytes a character; the operating system takes 128 KiB in one argument. */
const LONGEST_COMMAND = 30_000;
const LONGEST_PATH = 4_096;
const LONGEST_MILESTONE = 400;
/** All are stored in one transaction, and all other writers wait for it. */
const MOST_TASKS = 1_000;
const MOST_WAITS = 5_000;
const DEFAULT_ITERATIONS = 10;
const DEFAULT_TIMEOUT_S = 600;

/** A text of at most this length. */
function limitedText(what: string, longest: number): Schema<string> {
  return {
    ...text,
    read(value, at, report) {
      if (typeof value !== 'string' || value.trim() === '') throw report(at, { must: text.must, value: { is: value } });
      const unpaired = findUnpaired(value);
      if (unpaired !== null) throw report(at, { says: unpairedIn(what, unpaired), hint: UNPAIRED_HINT });
      if (value.length <= longest) return value;
      const says = `${what} may have at most ${longest} characters.`;
      throw report(at, { says, hint: 'Put longer text into a file, and name the file.' });
    },
  };
}

/** A name that identifies something. */
const NAME: Schema<string> = {
  ...text,
  read(value, at, report) {
    try {
      return checkKey(value, String(at.findLast((part) => typeof part === 'string')));
    } catch (error) {
      throw report(at, { says: (error as Error).message });
    }
  },
};

/** It becomes part of a conversation's key, whose length is limited. */
const MILESTONE: Schema<string> = {
  ...NAME,
  read(value, at, report) {
    const name = NAME.read(value, at, report);
    if (name.length <= LONGEST_MILESTONE) return name;
    throw report(at, { says: `A milestone may have at most ${LONGEST_MILESTONE} characters.` });
  },
};

const GOAL: Schema<string> = {
  ...text,
  read(value, at, report) {
    if (typeof value !== 'string' || value.trim() === '') {
      throw report(at, { says: 'A task needs a goal, which is a non-empty text.' });
    }
    return limitedText('The goal', LONGEST_TEXT).read(value, at, report).trimEnd();
  },
};

const COMMAND = object({
  command: required(limitedText('A command', LONGEST_COMMAND)),
  timeout: whole({ least: 1, most: 86_400 }),
});
const JUDGE = object({ agent: required(NAME), ask: limitedText('The question to a judge', LONGEST_TEXT) });

const GATE: Schema<Input<typeof COMMAND> | Input<typeof JUDGE> | string, Gate> = {
  ...either(text, either(COMMAND, JUDGE)),
  read(value, at, report) {
    if (typeof value === 'string') return commandGate({ command: value }, at, report);
    if (!isObject(value) || 'command' in value === 'agent' in value) {
      const says = `A gate must be a command, {command, timeout} or {agent, ask}, not ${shown(value)}.`;
      throw report(at, { says });
    }
    if ('command' in value) return commandGate(value, at, report);
    const { agent, ask = 'The goal is reached, completely.' } = JUDGE.read(value, at, report);
    return { kind: 'agent', agent, ask };
  },
};

function commandGate(value: unknown, at: Path, report: Report): Gate {
  const { command, timeout = DEFAULT_TIMEOUT_S } = COMMAND.read(value, at, report);
  if (command.includes('\0')) throw report([...at, 'command'], { says: 'A command must not contain zero bytes.' });
  return { kind: 'command', command, timeoutMs: timeout * 1_000 };
}

const TASK_BUDGET = {
  ...BUDGET,
  read(value: unknown, at: Path, report: Report) {
    const budget = value === null ? NO_BUDGET : parseBudget(value);
    if (budget !== null) return budget;
    throw report(at, { says: `A budget needs a unit: "2.50 USD" or "50000 tokens", not ${shown(value)}.` });
  },
};

const NAMES: Schema<string | readonly string[], readonly string[]> = {
  ...either(text, list(text)),
  read: (value, at, report) =>
    Array.isArray(value) ? list(NAME).read(value, at, report) : [NAME.read(value, at, report)],
};

/** What several tasks of a plan may share as `defaults`. Null: none, whatever the defaults are. */
const SHARED = {
  gate: about('What judges whether the goal is reached: a command, or an agent.', orNull(GATE)),
  milestone: about('Tasks of one milestone share a conversation.', orNull(MILESTONE)),
  agent: about('Left out: the default agent.', orNull(NAME)),
  sessions: about('Whether the turns of the task keep their session.', orNull(oneOf(SESSION_MODES))),
  maxIterations: about('Default 10.', orNull(whole({ least: 1, most: 10_000 }))),
  budget: about('How much the task may spend: "2.50 USD", "50k tokens". Default: no limit.', TASK_BUDGET),
  retryInterrupted: about(
    'How often in a row an interrupted turn is retried without asking a person. Default 0.',
    orNull(whole({ least: 0, most: 100 })),
  ),
  cwd: about('A directory to work in. Left out: one of its own.', orNull(limitedText('A directory', LONGEST_PATH))),
  sandbox: about('The name of a sandbox that it shares with others. Left out: one of its own.', orNull(NAME)),
  permissions: about('Default: deny.', orNull(oneOf(PERMISSION_MODES))),
};

const TASK = object({
  name: about('The name within the plan.', orNull(NAME)),
  goal: required(GOAL),
  session: about('The agent\'s id of a session to continue in, whatever "sessions" says.', orNull(NAME)),
  newSession: about(
    'The id that the session of the task shall have, for an agent that takes one: the first turn opens it, later turns resume it.',
    orNull(NAME),
  ),
  after: about('Names of tasks of the same plan that must be done first.', orNull(NAMES)),
  ...SHARED,
});
const DEFAULTS = object(SHARED);

/**
 * A goal that an agent works on until its gate passes, as a caller writes it.
 *
 * @example
 * import type { TaskInput } from 'throughline';
 *
 * const task: TaskInput = { goal: 'Make the tests pass.', gate: 'npm test', agent: 'claude', budget: '2 USD' };
 */
export interface TaskInput extends Input<typeof TASK> {}

/**
 * One task, a list of them, or a list with defaults: as in a task file.
 *
 * @example
 * import type { TaskPlan } from 'throughline';
 *
 * const plan: TaskPlan = {
 *   defaults: { agent: 'claude', gate: 'npm test' },
 *   tasks: [{ name: 'parser', goal: 'Write the parser.' }, { goal: 'Document it.', after: 'parser' }],
 * };
 */
export type TaskPlan =
  | TaskInput
  | readonly TaskInput[]
  | {
      readonly tasks: readonly TaskInput[];
      /** Used by tasks that do not set these fields. */
      readonly defaults?: Input<typeof DEFAULTS> | undefined;
      /** How many of these may run at once. */
      readonly parallel?: number | null | undefined;
    };

const PLAN = object({
  tasks: required({ ...list(TASK, 1), must: 'a list of at least one task', read: (value: unknown) => value }),
  defaults: DEFAULTS,
  parallel: orNull(whole({ least: 1, most: 1_000 })),
});

/** For documents: one task, and a plan of several. `parsePlan` checks more than they express. */
export const PLAN_SCHEMAS = { task: TASK.json, plan: PLAN.json };

/** Checks a plan from a file or a caller: one task, a list of them, or `{tasks, defaults, parallel}`. Throws `invalid`. */
export function parsePlan(input: unknown, locate: Locate = inWords): CheckedPlan {
  const report = reportAt((path) => locate(asGiven(input, path)));
  const given = isTask(input) ? { tasks: [input] } : Array.isArray(input) ? { tasks: input } : input;
  if (!isObject(given)) throw report([], { says: 'A plan must be an object with "tasks".' });
  const { tasks, defaults = {}, parallel = null } = PLAN.read(given, [], report);
  if (!Array.isArray(tasks) || tasks.length === 0) {
    throw report(['tasks'], { says: '"tasks" must be a list of at least one task.' });
  }
  checkSize(tasks, report);
  const specs = tasks.map((task, i) => parseTask(task, defaults, ['tasks', i], report));
  checkTogether(specs, (i, field, says, hint) => report(['tasks', i, field], { says, ...(hint && { hint }) }));
  return { parallel, tasks: specs };
}

/** A plan may be one task by itself. */
function isTask(plan: unknown): boolean {
  return isObject(plan) && !('tasks' in plan);
}

/** Turns a path of `{tasks: […]}` into the path in what the caller gave. */
function asGiven(plan: unknown, path: PlanPath): PlanPath {
  if (Array.isArray(plan)) return path.slice(1);
  return isTask(plan) ? path.slice(2) : path;
}

export function inWords(path: PlanPath): string {
  const name = dotted(path);
  return name === '' ? '' : `${name}: `;
}

/** Where the field of a task is in the plan as the caller gave it. */
export function placesIn(plan: unknown, locate: Locate): (index: number, field: keyof TaskSpec) => string {
  return (index, field) => locate(asGiven(plan, ['tasks', index, field]));
}

function checkSize(tasks: readonly unknown[], report: Report): void {
  const hint = 'Split it into several plans.';
  if (tasks.length > MOST_TASKS) {
    const says = `A plan may have at most ${MOST_TASKS} tasks; this one has ${tasks.length}.`;
    throw report(['tasks'], { says, hint });
  }
  let waits = 0;
  for (const task of tasks) if (isObject(task) && Array.isArray(task.after)) waits += task.after.length;
  if (waits <= MOST_WAITS) return;
  const says = `A plan may have at most ${MOST_WAITS} names in all "after" lists; this one has ${waits}.`;
  throw report(['tasks'], { says, hint });
}

function parseTask(input: unknown, defaults: Output<typeof DEFAULTS>, path: PlanPath, report: Report): TaskSpec {
  if (!isObject(input)) throw report(path, { says: `A task must be an object, not ${shown(input)}.` });
  const task = { ...defaults, ...TASK.read(input, path, report) };
  return {
    name: task.name ?? null,
    goal: task.goal,
    gate: task.gate ?? null,
    milestone: task.milestone ?? null,
    agent: task.agent ?? null,
    sessions: task.sessions ?? null,
    session: task.session ?? null,
    newSession: task.newSession ?? null,
    maxIterations: task.maxIterations ?? DEFAULT_ITERATIONS,
    budget: task.budget ?? NO_BUDGET,
    after: task.after ?? [],
    retryInterrupted: task.retryInterrupted ?? 0,
    cwd: task.cwd ?? null,
    sandbox: task.sandbox ?? null,
    permissions: task.permissions ?? 'deny',
  };
}

const SEE_DOCS = 'docs/tasks.md lists every field, with an example.';

/** Makes `invalid` errors with the place in the plan. */
function reportAt(locate: Locate): Report {
  return (path, wrong) => {
    const at = locate(path);
    if ('says' in wrong) return new ThroughlineError('invalid', `${at}${wrong.says}`, { hint: wrong.hint ?? SEE_DOCS });
    const name = path.findLast((part) => typeof part === 'string');
    if ('known' in wrong) {
      const hint = `Known fields: ${wrong.known.join(', ')}.`;
      return new ThroughlineError('invalid', `${at}Unknown field "${name}".`, { hint });
    }
    const not = wrong.value === undefined ? '' : `, not ${shown(wrong.value.is)}`;
    return new ThroughlineError('invalid', `${at}"${name}" must be ${wrong.must}${not}.`, { hint: SEE_DOCS });
  };
}
