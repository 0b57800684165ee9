import { type Failure, ThroughlineError } from '../../core/errors.ts';
import { mergeParts, PartsBuilder } from '../../core/record.ts';
import type { Turn } from '../../core/turn.ts';
import { NO_USAGE } from '../../core/usage.ts';
import type { Agent } from '../../ports/agent.ts';
import type { Write } from '../../ports/store/writes.ts';
import { eventsOfTurn } from '../reading/views.ts';
import { type Hold, reopens } from '../worker/hold.ts';
import { readTail, recordOf } from './end-turn.ts';

/**
 * Ends a turn that an earlier holder of the lease had sent. First its process is ended, so that nothing more can happen;
 * then the agent's own storage is read for what nobody saw; then the turn is interrupted, with all that is known of it.
 * Nothing is sent again, and no tool runs (R6).
 */
export async function recover(hold: Hold, turn: Turn): Promise<void> {
  const { store, processes, clock, agents } = hold.parts;
  const { owner, id } = hold.conversation;
  const ended = turn.sent?.process ? await processes.end(turn.sent.process) : 'ended';
  const agent = agents.get(turn.agent)?.agent;
  const sessions = await store.sessions(owner, id, { agent: turn.agent, limit: 20 });
  const session = sessions.find((candidate) => candidate.id === turn.sessionId) ?? null;
  if (session?.process) await processes.end(session.process);

  const seen = new PartsBuilder();
  for await (const event of eventsOfTurn(store, owner, turn.id)) {
    if (event.kind === 'turn.update') seen.add(event.payload.update);
  }
  const keeps = agent !== undefined && (await reopens(agent).catch(() => false));
  const readable = keeps && (await agent.traits()).position;
  const tail = session && readable ? await unseen(hold, agent, session.id, turn) : null;
  const failure: Failure = {
    code: 'interrupted',
    message:
      ended === 'ended'
        ? 'The program that ran this turn ended in the middle of it; whether the agent finished is not known.'
        : 'The program that ran this turn ended in the middle of it; whether the agent finished, or runs on where we cannot end it, is not known.',
    hint: 'What is known of it is kept, and the next turn is told of it. "throughline retry" asks again.',
  };
  const parts = mergeParts(seen.parts(), tail?.found ?? []);
  const run = {
    sessionId: turn.sessionId,
    usage: NO_USAGE,
    startedAt: turn.startedAt ?? turn.createdAt,
    endedAt: clock.now(),
  };
  const record = recordOf(turn, 'interrupted', failure, parts, run);
  const writes: Write[] = [];
  if (session) {
    const change = { state: keeps ? 'unsettled' : 'lost', position: tail?.position ?? null, process: null } as const;
    writes.push({ write: 'change-session', ref: session.ref, change, reason: `turn ${turn.n} was interrupted` });
  }
  writes.push({
    write: 'end',
    turn: turn.id,
    end: { outcome: 'interrupted', failure, record, session: session?.ref ?? null, usage: NO_USAGE },
  });
  await hold.lease.write(...writes);
  hold.conversation = { ...hold.conversation, head: turn.n, historyCount: hold.conversation.historyCount + 1 };
}

/** What nobody saw of the turn. Null: it cannot be read, and the turn has to end all the same (R4). */
async function unseen(hold: Hold, agent: Agent, sessionId: string, turn: Turn) {
  try {
    return turn.sent && (await readTail(hold, agent, sessionId, turn.sent));
  } catch (error) {
    // Its directory is gone, or the agent is: no fault of ours.
    if (!(error instanceof ThroughlineError)) hold.parts.onBug(error, `reading what is left of turn ${turn.id}`);
    return null;
  }
}
