import { randomUUID } from 'node:crypto';
import { ThroughlineError } from '../core/errors.ts';
import type { SessionState } from '../core/restore/session.ts';
import type { Finding } from '../ports/doctor.ts';
import type { Census, CensusSession } from '../ports/store/census.ts';
import type { SessionChange } from '../ports/store/sessions.ts';
import type { DoctorParts } from './parts.ts';

/**
 * Sessions that are recorded as live, but have no process: a worker could not record their end. Sessions with an open turn are left to the
 * worker that ends that turn.
 */
export async function checkSessions(parts: DoctorParts, { sessions }: Census): Promise<Finding[]> {
  const orphaned: CensusSession[] = [];
  for (const session of sessions) {
    const { state, held, open, process } = session;
    if (state !== 'live' || held || open > 0) continue;
    if (process === null || (await parts.sandboxes.status(process)) === 'dead') orphaned.push(session);
  }
  return Promise.all(
    orphaned.map(async (session) => {
      const { problem, remedy, state } = remedyFor(session, await parts.reopens(session.agent));
      return {
        check: 'sessions',
        subject: `session ${session.id} of conversation ${session.conversation}`,
        problem,
        remedy,
        repair: () => change(parts, session, { state, process: null }),
      };
    }),
  );
}

/** `reopens`: whether the agent can open its sessions again; null: unknown. */
function remedyFor(
  { turns, newest, agent }: Pick<CensusSession, 'turns' | 'newest' | 'agent'>,
  reopens: boolean | null,
): { problem: string; remedy: string; state: SessionState } {
  const problem = 'It is recorded as live, but has no process.';
  if (turns === 0) {
    // Its id was assigned before its first prompt, so the agent may not have it.
    const unused = 'It is recorded as live, but no turn ever ran in it.';
    return { problem: unused, remedy: 'Close the record: the next turn starts a new session.', state: 'closed' };
  }
  if (!newest) {
    return { problem, remedy: 'Close the record: the conversation uses a newer session.', state: 'closed' };
  }
  if (reopens === true) return { problem, remedy: 'Record it as dormant: the next turn resumes it.', state: 'dormant' };
  if (reopens === null) {
    const remedy = `Record it as dormant: the next turn resumes it, if ${agent} is available then and can.`;
    return { problem, remedy, state: 'dormant' };
  }
  const remedy = `Record it as lost: ${agent} cannot open it again. The next turn starts a new session with the history.`;
  return { problem, remedy, state: 'lost' };
}

const LEASE_MS = 10_000;

/** Under the conversation's lease, like everything that is written about a session. */
async function change(
  { store, processes, place }: DoctorParts,
  session: CensusSession,
  change: SessionChange,
): Promise<void> {
  const claim = await store.claim({
    worker: { id: randomUUID(), process: processes.self() },
    place,
    agents: [], // none: a turn that was queued meanwhile is not ours to run
    driver: 'worker',
    leaseMs: LEASE_MS,
    conversation: session.conversation,
  });
  if (claim === null) throw new ThroughlineError('conflict', 'Another process holds the conversation now.');
  try {
    const reason = 'found without a process by the doctor';
    await store.commit(claim.fence, 1, [{ write: 'change-session', ref: session.ref, change, reason }]);
  } finally {
    await store.release(claim.fence);
  }
}
