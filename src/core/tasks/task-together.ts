import type { ThroughlineError } from '../errors.ts';
import type { TaskSpec } from './task.ts';

type Fault = (index: number, field: string, what: string, hint?: string) => ThroughlineError;

/** Finds contradictions between the tasks of a plan, before any of them is stored. */
export function checkTogether(tasks: readonly TaskSpec[], fault: Fault): void {
  const byName = indexByName(tasks, fault);
  for (const [i, { after }] of tasks.entries()) {
    const unknown = after.find((name) => !byName.has(name));
    if (unknown !== undefined) {
      const hint = '"after" lists the "name" of tasks of the same plan.';
      throw fault(i, 'after', `No task of this plan is called ${JSON.stringify(unknown)}.`, hint);
    }
  }
  checkCycles(tasks, byName, fault);
  checkSessions(tasks, fault);
  checkMilestones(tasks, fault);
}

function indexByName(tasks: readonly TaskSpec[], fault: Fault): Map<string, number> {
  const byName = new Map<string, number>();
  for (const [i, { name }] of tasks.entries()) {
    if (name === null) continue;
    if (byName.has(name)) {
      throw fault(i, 'name', `Two tasks are called ${JSON.stringify(name)}.`, 'Give one of them another name.');
    }
    byName.set(name, i);
  }
  return byName;
}

/** Tasks that wait for each other would never start. */
function checkCycles(tasks: readonly TaskSpec[], byName: ReadonlyMap<string, number>, fault: Fault): void {
  /** Tasks that wait for others that are in this set; in the end, those that never start. */
  const open = new Set(tasks.keys());
  const waitsFor = (i: number) => tasks[i]?.after.map((name) => byName.get(name) as number).find((j) => open.has(j));
  for (let before = 0; before !== open.size; ) {
    before = open.size;
    for (const i of open) if (waitsFor(i) === undefined) open.delete(i);
  }
  let [at] = open;
  if (at === undefined) return;
  const path: number[] = [];
  while (!path.includes(at)) {
    path.push(at);
    at = waitsFor(at) as number;
  }
  const circle = [...path.slice(path.indexOf(at)), at].map((i) => tasks[i]?.name).join(' → ');
  const hint = 'Remove one of these names from "after".';
  throw fault(path.at(-1) as number, 'after', `These tasks wait for each other: ${circle}.`, hint);
}

/** A session of an agent belongs to one conversation for good: a second task could never use it. */
function checkSessions(tasks: readonly TaskSpec[], fault: Fault): void {
  const taken = new Map<string, number>();
  for (const [i, task] of tasks.entries()) {
    const session = task.newSession ?? task.session;
    if (session === null) continue;
    const field = task.newSession === null ? 'session' : 'newSession';
    if (task.newSession !== null) checkNewSession(i, task, fault);
    if (task.milestone !== null) {
      throw fault(
        i,
        field,
        'A task of a milestone uses the sessions of the milestone.',
        `Leave out "${field}" or the milestone.`,
      );
    }
    const first = taken.get(session);
    if (first !== undefined) {
      const other = tasks[first]?.name ?? `task ${first + 1}`;
      throw fault(
        i,
        field,
        `The session ${JSON.stringify(session)} is already named for ${JSON.stringify(other)}. A session belongs to one conversation.`,
        'Give both the same milestone, so that they share a conversation, or leave the session out.',
      );
    }
    taken.set(session, i);
  }
}

function checkNewSession(i: number, { session, sessions }: TaskSpec, fault: Fault): void {
  if (session !== null) {
    const what = 'A task either continues in a session or opens a new one, not both.';
    throw fault(i, 'newSession', what, '"session" names an existing session, "newSession" is the id for a new one.');
  }
  if (sessions === null || sessions === 'kept') return;
  const what = `A task with "sessions": "${sessions}" opens a new session for each turn, and an id is for one.`;
  throw fault(i, 'newSession', what, 'Set "sessions" to "kept", or leave out "newSession".');
}

/** The directory of a conversation never changes, so tasks that share one must agree on it. */
function checkMilestones(tasks: readonly TaskSpec[], fault: Fault): void {
  const first = new Map<string, TaskSpec>();
  for (const [i, task] of tasks.entries()) {
    if (task.milestone === null) continue;
    const known = first.get(task.milestone);
    first.set(task.milestone, known ?? task);
    for (const field of ['cwd', 'sandbox'] as const) {
      if (known === undefined || known[field] === task[field]) continue;
      const what = `All tasks of the milestone ${JSON.stringify(task.milestone)} must have the same "${field}".`;
      throw fault(i, field, what, 'They share a conversation, whose directory never changes.');
    }
  }
}
