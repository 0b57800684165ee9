import { type Plan, planContinuity } from '../../core/continuity.ts';
import type { Proof, Receipt } from '../../core/receipt.ts';
import type { ReceiptRung } from '../../core/restore-settings.ts';
import type { Delivered } from './deliver.ts';
import type { RestoreRequest } from './restore.ts';
import { toldInVain } from './rewind.ts';

type PlanRequest = Pick<RestoreRequest, 'hold' | 'agent' | 'traits' | 'settings' | 'explicit' | 'rewind'> &
  Partial<Pick<RestoreRequest, 'turn'>>;

/** The ways to restore, from what the store and the hold know now. */
export async function planFor(request: PlanRequest): Promise<Plan> {
  const { hold, agent, traits, settings, explicit, rewind, turn } = request;
  const { owner, id, head } = hold.conversation;
  const newest = await hold.parts.store.sessions(owner, id, { agent: agent.name, limit: 20 });
  const named = explicit === null ? [] : await hold.parts.store.findSessions(owner, explicit);
  const own = named.filter((session) => session.agent === agent.name && session.conversation === id);
  const sessions = [...newest, ...own];
  // A process has the failed prompt in its context for as long as it lives.
  const living = rewind === null ? hold.living(agent.name) : null;
  const { ref: live, unproved } = living ?? { ref: null, unproved: false };
  const [last] = newest;
  // A warm-up tells nothing: whether to go on in this session, and from where, is for the turn to say.
  const again = last === undefined || turn === null ? 0 : await toldInVain(hold, last);
  const rewinds = rewind !== null && rewind.ref === last?.ref;
  const known = { head, sessions, live, unproved, toldInVain: again, rewinds };
  return planContinuity({ ...known, traits, restore: settings, explicit });
}

/** How a restore went, as far as it is known before the prompt. */
export interface Went {
  readonly rung: ReceiptRung;
  readonly sessionId: string | null;
  readonly before: Proof;
  readonly given: Delivered;
  readonly dropped: number;
}

type ReceiptRequest = Pick<RestoreRequest, 'hold' | 'agent' | 'turn' | 'attempt' | 'tried' | 'lock'>;

export function receiptOf(request: ReceiptRequest, started: number, went: Went): Receipt {
  const { hold, agent, turn, attempt, tried, lock } = request;
  const { rung, sessionId, before, given, dropped } = went;
  return {
    turn: turn?.n ?? null,
    attempt,
    agent: agent.name,
    rung,
    sessionId,
    carried: hold.conversation.historyCount - dropped,
    dropped,
    delivered: given.turns,
    deliveredTokens: given.tokens,
    unsettled: given.unsettled,
    modelCalls: given.usage.modelCalls,
    usage: given.usage,
    toolsRan: given.toolsRan,
    proof: before,
    before,
    after: null,
    tried: [...tried],
    lockWaits: lock.waits,
    ms: Math.round(hold.parts.clock.monotonic() - started),
  };
}
