import type { ProcessIdentity } from '../core/process.ts';
import type { Finding } from '../ports/doctor.ts';
import type { Check, DoctorParts } from './parts.ts';

/** Agents and gates that go on running though nobody who could read their answer is there. */
export const checkProcesses: Check = async (parts, { sessions, tasks }) => {
  const agents = sessions
    .filter(({ held }) => !held)
    .flatMap(({ process, agent, conversation }) => left(parts, process, `${agent} in conversation ${conversation}`));
  const gates = tasks
    .filter(({ state }) => state !== 'running')
    .flatMap(({ gate, id }) => left(parts, gate, `the gate of task ${id}`));
  return [...agents, ...gates];
};

function left({ processes }: DoctorParts, process: ProcessIdentity | null, what: string): Finding[] {
  if (process === null || processes.status(process) !== 'alive') return [];
  return [
    {
      check: 'processes',
      subject: `process ${process.pid}`,
      problem: `It is ${what}, and nobody holds it any more.`,
      remedy: 'End it, with all that it started.',
      repair: async () => {
        await processes.end(process);
      },
    },
  ];
}
