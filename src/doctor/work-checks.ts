import type { SandboxProcess } from '../core/process.ts';
import {
  continuable,
  isHeld,
  isTakenBy,
  isThere,
  runsAt,
  runsOnlyAt,
  type Standing,
  whyStranded,
} from '../core/turn/standing.ts';
import type { Finding } from '../ports/doctor.ts';
import type { Processes } from '../ports/processes.ts';
import type { Census } from '../ports/store/census.ts';
import { type DoctorParts, NO_REPAIR } from './parts.ts';

// What dead processes held: conversations, turns, tasks, and the programs that they started.

/** Leases of provably dead processes. Any process can take them over; until then the conversations are blocked. */
export async function checkLeases({ store, processes, reap }: DoctorParts): Promise<Finding[]> {
  const dead = (await store.workers()).filter(({ process }) => processes.status(process) === 'dead');
  return dead.map(({ id, process }) => ({
    check: 'leases',
    subject: `worker ${id}`,
    problem: `Process ${process.pid} has ended and still holds conversations.`,
    remedy: 'End what it left running, and free its conversations.',
    repair: async () => {
      await reap();
    },
  }));
}

/** Open turns that no process runs. Those that a dead process was running can be ended; the others need a process. */
export async function checkTurns(parts: DoctorParts, { standings }: Census): Promise<Finding[]> {
  const { store, processes, place, endLeft } = parts;
  const unheld = standings.filter((standing) => !isHeld(standing, processes.status));
  if (unheld.length === 0) return [];
  const [takers, names] = await Promise.all([store.takers(), parts.agentNames()]);
  return unheld.flatMap((standing): Finding[] => {
    const { owner, turn, conversation, key } = standing;
    const here = runsAt(standing.place, place);
    const known = names.has(turn.agent);
    const taken = isTakenBy(standing, takers, processes.status);
    const why = whyStranded(standing, { held: false, taken, here, known });
    if (why === null) return [];
    const found = { check: 'turns', subject: `turn ${turn.n} of conversation ${key ?? conversation}` };
    if (why.reason !== 'no_process' || turn.state === 'queued') {
      return [{ ...found, problem: `${why.message} ${why.hint}`, ...NO_REPAIR }];
    }
    const problem = `It is ${turn.state}, but ${whatBecameOf(standing.holder, processes)}.`;
    const remedy = 'End what is left of it, and record what is known of the turn.';
    return [{ ...found, problem, remedy, repair: () => endLeft(owner, turn.id) }];
  });
}

function whatBecameOf(holder: Standing['holder'], processes: Processes): string {
  if (holder === null || processes.status(holder.process) === 'dead') return 'the process that ran it has ended';
  const { pid, host } = holder.process;
  const who = `process ${pid}${host === undefined ? '' : ` of ${host}`}`;
  return `${who}, on another machine or in another container, has not renewed its lease`;
}

/** Conversations whose place has no process. A person decides: start a server there, fork them, or move them. */
export async function checkPlaces({ store, processes, place }: DoctorParts, { places }: Census): Promise<Finding[]> {
  const away = places.filter((one) => one.place !== place);
  const takers = away.length === 0 ? [] : await store.takers();
  const isServed = (one: string) => takers.some((taker) => taker.place === one && isThere(taker, processes.status));
  return away
    .filter((one) => !isServed(one.place))
    .map(({ place: other, name, conversations }) => {
      const { message, hint } = continuable(runsOnlyAt(`Each of ${conversations} conversations`, name, other));
      const found = { check: 'places', subject: `place ${name ?? other}`, isNote: true };
      return { ...found, problem: `${message} ${hint}`, ...NO_REPAIR };
    });
}

/** Tasks whose runner is dead, and tasks that wait for a task that will not be done. */
export async function checkTasks({ store, processes }: DoctorParts, census: Census): Promise<Finding[]> {
  const dead = (await store.tasks.holders()).filter(({ process }) => processes.status(process) === 'dead');
  const held = dead.map(({ id, process }) => ({
    check: 'tasks',
    subject: `runner ${id}`,
    problem: `Process ${process.pid} has ended and still holds tasks.`,
    remedy: 'Queue its tasks again; a server or "throughline task run" continues them.',
    repair: () => store.tasks.forgetHolder(id),
  }));
  const blocked = census.tasks
    .filter(({ state, blockedBy }) => state === 'waiting' && blockedBy.length > 0)
    .map(({ id, blockedBy }) => ({
      check: 'tasks',
      subject: `task ${id}`,
      problem: `It waits for ${blockedBy.join(', ')}, which failed or was cancelled. Retry that task, or cancel this one.`,
      ...NO_REPAIR,
    }));
  return [...held, ...blocked];
}

/** Programs that still run although no process of ours reads their output: agents, gates, and those that could not be recorded. */
export async function checkProcesses({ sandboxes }: DoctorParts, { sessions, tasks }: Census): Promise<Finding[]> {
  const left = (process: SandboxProcess, problem: string): Finding => ({
    check: 'processes',
    subject: process.label,
    problem,
    remedy: 'End it, with everything that it started.',
    repair: async () => {
      await sandboxes.end(process);
    },
  });
  const orphan = async (process: SandboxProcess | null, what: string): Promise<Finding[]> => {
    if (process === null || (await sandboxes.status(process)) !== 'alive') return [];
    return [left(process, `It is ${what}, and no worker holds it any more.`)];
  };
  const agents = sessions
    .filter(({ held }) => !held)
    .map(({ process, agent, conversation }) => orphan(process, `${agent} in conversation ${conversation}`));
  const gates = tasks
    .filter(({ state }) => state !== 'running')
    .map(({ gate, id }) => orphan(gate, `the gate of task ${id}`));
  const recorded = (await Promise.all([...agents, ...gates])).flat();
  const subjects = new Set(recorded.map(({ subject }) => subject));
  const others = (await sandboxes.orphans())
    .map((process) => left(process, 'The process of this data home that started it has ended.'))
    .filter(({ subject }) => !subjects.has(subject));
  return [...recorded, ...others];
}
