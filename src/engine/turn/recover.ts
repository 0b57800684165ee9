import { type Failure, isDamage, ThroughlineError } from '../../core/errors.ts';
import { withUnknownCost } from '../../core/limits/budget.ts';
import { allCondensed } from '../../core/restore/condensed.ts';
import { NOTHING_OMITTED, type Receipt } from '../../core/restore/receipt.ts';
import { canReopen } from '../../core/restore/traits.ts';
import { PartsBuilder } from '../../core/turn/record.ts';
import type { Turn } from '../../core/turn/turn.ts';
import { endOfSent } from '../../core/turn/turn-decision.ts';
import { NO_USAGE } from '../../core/turn/usage.ts';
import type { Agent } from '../../ports/agent.ts';
import { eventsOfTurn } from '../reading/views.ts';
import type { Held } from '../worker/held.ts';
import { closeReason, outcomeOf, readTail, type SessionEffect, writeEnd } from './end-turn.ts';

/**
 * Ends a turn that an earlier holder of the lease had sent. First the agent's process is ended, so that nothing more can happen. Then the
 * agent's own storage is read for the output that nobody saw. If it shows that the agent finished the turn, the turn is completed.
 * Otherwise it is interrupted, with everything that is known of it. Nothing is sent again, and no tool runs (R6).
 */
export async function recover(held: Held, turn: Turn): Promise<void> {
  const { store, sandboxes, clock, agents } = held.parts;
  const { owner, id } = held.conversation;
  const sentTo = turn.sent?.process ?? null;
  // The store is read while the process ends, because somebody may be waiting for this turn.
  const [processEnded, sessions, receipts] = await Promise.all([
    sentTo === null ? 'ended' : sandboxes.end(sentTo),
    unlessDamaged(store.sessions(owner, id, { agent: turn.agent, limit: 20 }), []),
    store.receipts(owner, id, { turn: turn.n }),
  ]);
  const agent = agents.get(turn.agent)?.agent;
  const session = sessions.find((candidate) => candidate.id === turn.sessionId) ?? null;
  // Usually it is the same process, and ending one reads the list of all processes several times.
  if (session?.process && session.process.id !== sentTo?.id) await sandboxes.end(session.process);

  const seen = new PartsBuilder();
  await unlessDamaged(addSeen(seen, eventsOfTurn(store, owner, turn.id)), undefined);
  const sandbox = await held.openSandbox().catch(() => null);
  const reopens = agent !== undefined && sandbox !== null && (await agent.traits(sandbox).then(canReopen, () => false));
  const readable = reopens && (await agent.traits(sandbox)).position;
  const tail = session && readable ? await unseen(held, agent, session.id, turn) : null;
  const end = endOfSent({
    failure: interrupted(processEnded === 'ended'),
    crashed: true,
    seen: seen.parts(),
    usage: withUnknownCost(NO_USAGE),
    isUsageReported: false,
    found: tail?.found ?? [],
    ended: tail?.ended ?? false,
    usageFound: tail?.usageFound ?? {},
  });
  const { failure, recovered, parts, usage } = end;
  const condensed = tail?.condensed ?? seen.condensed;
  const { context } = seen;
  const position = tail?.position ?? null;
  const gone = { alive: false, process: null, reopens, position, condensed, context, copy: {} };
  const receipt = receipts.at(-1) ?? null;
  const effect = { ...gone, ...(recovered && receipt !== null ? told(turn, receipt) : CUT_OFF) };
  await writeEnd(held, {
    turn,
    outcome: outcomeOf(failure, false),
    failure,
    usage,
    // The receipt was written before the prompt, so it does not have what the agent condensed since then.
    receipt: condensed === null || receipt === null ? null : allCondensed(receipt),
    said: {
      parts,
      sessionId: turn.sessionId,
      startedAt: turn.startedAt ?? turn.createdAt,
      endedAt: clock.now(),
      ...(recovered && { recovered }),
    },
    untaken: false,
    session: session && { ref: session.ref, effect },
  });
}

async function addSeen(seen: PartsBuilder, events: ReturnType<typeof eventsOfTurn>): Promise<void> {
  for await (const event of events) if (event.kind === 'turn.update') seen.add(event.payload.update, event.at);
}

/** The turn must end although what is stored of it is damaged (R4). */
async function unlessDamaged<T>(read: Promise<T>, otherwise: T): Promise<T> {
  try {
    return await read;
  } catch (error) {
    if (isDamage(error)) return otherwise;
    throw error;
  }
}

type Told = Pick<SessionEffect, 'was' | 'dropped' | 'omitted' | 'closeReason'>;

const CUT_OFF: Told = { was: 'cut off', dropped: 0, omitted: NOTHING_OMITTED, closeReason: null };

/** What the session was told when it was opened for the turn. */
function told(turn: Turn, { rung, dropped, shortened, leftOut }: Receipt): Told {
  return {
    was: 'told',
    dropped,
    omitted: { shortened, leftOut },
    closeReason: closeReason(turn, rung, dropped + shortened),
  };
}

/** The part of the turn that nobody saw. Null: it cannot be read. The turn must end anyway (R4). */
async function unseen(held: Held, agent: Agent, sessionId: string, turn: Turn) {
  try {
    return turn.sent && (await readTail(held, agent, sessionId, turn.sent));
  } catch (error) {
    // The directory or the agent is gone: that is not a bug of this program.
    if (!(error instanceof ThroughlineError))
      held.parts.onBug(error, `reading the agent's storage for turn ${turn.id}`);
    return null;
  }
}

function interrupted(processEnded: boolean): Failure {
  const unknown = processEnded
    ? 'It is not known whether the agent finished.'
    : 'It is not known whether the agent finished, or still runs where we cannot end it.';
  return {
    code: 'interrupted',
    message: `The program that ran this turn ended in the middle of it. ${unknown}`,
    hint: 'What is known of the turn is kept, and the next turn gets it. "throughline retry KEY" sends the prompt again.',
  };
}
