import { randomUUID } from 'node:crypto';
import { ThroughlineError } from '../core/errors.ts';
import type { CensusSession } from '../ports/store/census.ts';
import type { SessionChange } from '../ports/store/sessions.ts';
import type { Check, DoctorParts } from './parts.ts';

const LEASE_MS = 10_000;

/**
 * Sessions on record as live that no process has. One that had turns can be resumed; one that never had any was named before
 * its first prompt, and its agent may not know it. Those with an open turn are left to the worker who ends that turn.
 */
export const checkSessions: Check = async (parts, { sessions }) => {
  const orphaned = sessions.filter(({ state, held, open, process }) => {
    const gone = process === null || parts.processes.status(process) === 'dead';
    return state === 'live' && !held && open === 0 && gone;
  });
  return orphaned.map((session) => {
    const used = session.turns > 0;
    return {
      check: 'sessions',
      subject: `session ${session.id} of conversation ${session.conversation}`,
      problem: used
        ? 'It is on record as live, and no process has it.'
        : 'It is on record, and no turn ever ran in it.',
      remedy: used ? 'Record it as dormant: the next turn resumes it.' : 'Close the record: the next turn begins anew.',
      repair: () => put(parts, session, { state: used ? 'dormant' : 'closed', process: null }),
    };
  });
};

/** Under the conversation's lease, like everything that is written about a session. */
async function put(parts: DoctorParts, session: CensusSession, change: SessionChange): Promise<void> {
  const { store, processes, place } = parts;
  const claim = await store.claim({
    worker: { id: randomUUID(), process: processes.self() },
    place,
    agents: [], // none: should a turn have come meanwhile, it is not ours to begin
    driver: 'worker',
    leaseMs: LEASE_MS,
    conversation: session.conversation,
  });
  if (claim === null) throw new ThroughlineError('conflict', 'Somebody else has the conversation now.');
  try {
    const reason = 'found without a process by the doctor';
    await store.commit(claim.fence, 1, [{ write: 'change-session', ref: session.ref, change, reason }]);
  } finally {
    await store.release(claim.fence);
  }
}
