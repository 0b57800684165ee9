import { given } from '../core/input/arguments.ts';
import type { ProcessIdentity, SandboxProcess } from '../core/process.ts';
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
    process: inWords(process),
    problem: 'Its process has ended and still holds conversations.',
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
    const why = whyStranded(standing, { held: false, taken, here, known, store: store.address });
    if (why === null) return [];
    const found = { check: 'turns', subject: `turn ${turn.n} of conversation ${key ?? conversation}` };
    if (why.reason !== 'no_process' || turn.state === 'queued') {
      return [{ ...found, problem: `${why.message} ${why.hint}`, ...NO_REPAIR }];
    }
    const { problem, process } = whatBecameOf(standing.holder, processes);
    const remedy = 'End what is left of it, and record what is known of the turn.';
    const says = { problem: `It is ${turn.state}, but ${problem}.`, remedy };
    return [{ ...found, ...says, ...given({ process }), repair: () => endLeft(owner, turn.id) }];
  });
}

function whatBecameOf(holder: Standing['holder'], processes: Processes): Pick<Finding, 'problem' | 'process'> {
  if (holder === null || processes.status(holder.process) === 'dead') {
    return { problem: 'the process that ran it has ended' };
  }
  const problem = 'its process, on another machine or in another container, has not renewed its lease';
  return { problem, process: inWords(holder.process) };
}

function inWords({ pid, host }: ProcessIdentity): string {
  return `process ${pid}${host === undefined ? '' : ` of ${host}`}`;
}

/** Conversations whose place has no process. A person decides: start a server there, fork them, or move them. */
export async function checkPlaces({ store, processes, place }: DoctorParts, { places }: Census): Promise<Finding[]> {
  const away = places.filter((one) => one.place !== place);
  const takers = away.length === 0 ? [] : await store.takers();
  const isServed = (one: string) => takers.some((taker) => taker.place === one && isThere(taker, processes.status));
  return away
    .filter((one) => !isServed(one.place))
    .map(({ place: other, name, conversations }) => {
      const { message, hint } = continuable(
        runsOnlyAt(`Each of ${conversations} conversations`, { home: name, place: other, store: store.address }),
      );
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
    process: inWords(process),
    problem: 'Its process has ended and still holds tasks.',
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
  const left = (process: SandboxProcess, subject: string, problem: string): Finding => ({
    check: 'processes',
    subject,
    process: process.label,
    problem,
    remedy: 'End it, with everything that it started.',
    repair: async () => {
      await sandboxes.end(process);
    },
  });
  const orphan = async (process: SandboxProcess | null, subject: string, problem: string): Promise<Finding[]> => {
    if (process === null || (await sandboxes.status(process)) !== 'alive') return [];
    return [left(process, subject, problem)];
  };
  const agents = sessions
    .filter(({ held }) => !held)
    .map(({ id, process, agent, conversation }) =>
      orphan(
        process,
        `session ${id} of conversation ${conversation}`,
        `Its agent, ${agent}, still runs, and no worker holds it any more.`,
      ),
    );
  const gates = tasks
    .filter(({ state }) => state !== 'running')
    .map(({ gate, id }) => orphan(gate, `gate of task ${id}`, 'It still runs, and no worker holds it any more.'));
  const recorded = (await Promise.all([...agents, ...gates])).flat();
  const known = new Set(recorded.map(({ process }) => process));
  const others = (await sandboxes.orphans()).filter(({ label }) => !known.has(label));
  const unrecorded = others.map((process) =>
    left(process, 'unrecorded program', 'It still runs. The process of this data home that started it has ended.'),
  );
  return [...recorded, ...unrecorded];
}
