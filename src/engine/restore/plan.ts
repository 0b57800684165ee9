import { type Plan, planContinuity, tooManyRepeats } from '../../core/restore/continuity.ts';
import type { EffectiveRestore } from '../../core/restore/restore-settings.ts';
import type { Session } from '../../core/restore/session.ts';
import type { AgentTraits } from '../../core/restore/traits.ts';
import type { Sent, Turn } from '../../core/turn/turn.ts';
import { eventsOfTurn } from '../reading/views.ts';
import type { Held } from '../worker/held.ts';
import type { RestoreRequest, RewindTo } from './request.ts';

/** Reads what the store and the worker know, and plans the steps. The rules are in `planContinuity`. */
export async function planFor(request: RestoreRequest): Promise<Plan> {
  const { held, agent, traits, settings, explicit, newSession, rewind, turn } = request;
  const { owner, id, head } = held.conversation;
  const newest = await held.newestSessions(agent.name);
  const asked = explicit ?? newSession;
  const named = asked === null ? [] : await held.parts.store.findSessions(owner, asked);
  const own = named.filter((session) => session.agent === agent.name && session.conversation === id);
  const sessions = [...newest, ...own];
  // A running process keeps the failed prompt in its context.
  const living = rewind === null ? held.living(agent.name) : null;
  const { ref: live, unproved } = living ?? { ref: null, unproved: false };
  const [last] = newest;
  // A warm-up delivers nothing: the next turn decides whether to continue in this session, and from where.
  const repeats = last === undefined || turn === null ? 0 : await countRepeats(held, last);
  const rewinds = rewind !== null && rewind.ref === last?.ref;
  const untold = await untoldOf(held, [...newest.slice(0, 1), ...own]);
  const known = { head, sessions, live, unproved, untold, repeats, rewinds };
  return planContinuity({ ...known, traits, restore: settings, explicit, newSession });
}

/** The sessions that were adopted and have completed no prompt since: their watermark is still their last imported turn. */
async function untoldOf(held: Held, sessions: readonly Session[]): Promise<string[]> {
  const { owner, id } = held.conversation;
  const untold: string[] = [];
  for (const { ref, origin, dropped, watermark } of sessions) {
    if (origin !== 'adopted' || dropped === 0) continue;
    const [turn] = await held.parts.store.turns(owner, id, { after: watermark - 1, limit: 1 });
    if (turn?.imported) untold.push(ref);
  }
  return untold;
}

/**
 * How many turns after its watermark an unsettled session was told already: all up to the last one that was sent in it. What other agents
 * have answered since is new to it. If no turn has ended in it, it was rebuilt for this turn, and was told all of them.
 */
async function countRepeats(held: Held, session: Session): Promise<number> {
  if (session.state !== 'unsettled') return 0;
  const { store } = held.parts;
  const { owner, id, head } = held.conversation;
  const lacking = await store.countRecordsAfter(owner, id, session.watermark);
  if (!tooManyRepeats(lacking)) return lacking;
  const newest = await store.recordsBefore(owner, id, { upTo: head, limit: MOST_LOOKED_AT });
  const last = newest.find(({ sessionId }) => sessionId === session.id);
  return last === undefined ? lacking : lacking - (await store.countRecordsAfter(owner, id, last.n));
}

/** How many records are searched. A session that missed more turns gets so much new text that repeats hardly matter: all count as told. */
const MOST_LOOKED_AT = 20;

// ── rewinding to before a failed prompt ───────────────────────────────────────────────────────────────────────────────

/** Where to rewind to, so that the model does not get a failed prompt twice; null: not possible. */
export function rewindOf(ref: string | null, { position, prompt }: Sent): RewindTo | null {
  return ref === null || position === null || prompt === null ? null : { ref, position, drops: prompt };
}

/** Where the session is rewound to before the first attempt of a turn; null: it is not rewound. */
export async function rewindAtFirst(
  held: Held,
  turn: Turn,
  traits: AgentTraits,
  { rung }: EffectiveRestore,
): Promise<RewindTo | null> {
  if (!traits.rewind) return null;
  const earlier = turn.attempt === 1 ? null : await rewindOfEarlier(held, turn);
  // The caller asked for the running process. It cannot be rewound: it keeps the failed prompt in its context.
  return earlier ?? (rung === 'live' ? null : rewindOfFailed(held, turn.agent));
}

/**
 * After an attempt of an earlier holder of the lease, which then died. That attempt had failed, and this was recorded: otherwise the turn
 * would have been ended as interrupted.
 */
async function rewindOfEarlier(held: Held, turn: Turn): Promise<RewindTo | null> {
  const { store } = held.parts;
  const { owner, id } = held.conversation;
  let last: Sent | null = null;
  for await (const event of eventsOfTurn(store, owner, turn.id)) {
    if (event.kind === 'turn.sent') last = event.payload.sent;
  }
  if (last === null) return null;
  const sessions = await store.sessions(owner, id, { agent: turn.agent });
  const session = sessions.find(({ ref }) => ref === last.session);
  // A session whose position has not moved has not seen the prompt.
  return session === undefined || session.position === last.position ? null : rewindOf(session.ref, last);
}

/**
 * After a turn that failed without doing anything. When many turns fail in a row, each is rewound to the same position, so that the
 * context does not grow with every failure. A session without a watermark is not rewound: it would get the whole history again.
 */
async function rewindOfFailed(held: Held, agent: string): Promise<RewindTo | null> {
  const { store } = held.parts;
  const { owner, id, head } = held.conversation;
  const [session] = await held.newestSessions(agent);
  if (session === undefined || session.watermark === 0) return null;
  if (!tooManyRepeats(await countRepeats(held, session))) return null;
  const [turn] = await store.turns(owner, id, { after: head - 1, limit: 1 });
  const [record] = await store.recordsBefore(owner, id, { upTo: head, limit: 1 });
  if (turn?.state !== 'failed' || turn.sent?.session !== session.ref || turn.sent.position === session.position)
    return null;
  return record?.parts.some(({ type }) => type === 'tool') ? null : rewindOf(session.ref, turn.sent);
}
