import { effectiveRestore } from '../core/restore-settings.ts';
import type { AgentTraits } from '../core/traits.ts';
import type { Turn } from '../core/turn.ts';
import type { NewTurn, Write } from '../ports/store.ts';
import { type SentPromptFact, sending } from './attempt.ts';
import { NOTHING_DELIVERED } from './deliver.ts';
import type { Hold } from './hold.ts';
import { LockWait } from './lock-wait.ts';
import { inLineage } from './open-step.ts';
import { planFor, receiptOf } from './plan.ts';
import type { Restored, RestoreRequest } from './restore.ts';

/**
 * What a turn needs to be sent in the very commit that accepts it: its session is warm, and was found to be where we left it.
 * The number and the agent of the turn are foreseen; where the store gives it others, it refuses these writes, and the turn
 * goes the usual way.
 */
export interface HeadStart {
  readonly traits: AgentTraits;
  readonly restored: Restored & { ok: true };
  readonly sent: SentPromptFact;
  readonly writes: readonly Write[];
}

type LastTurn = Pick<Turn, 'n' | 'agent'>;

/** Nothing is opened, written or asked for here, so it may come to nothing at any point: null. */
export async function headStart(hold: Hold, turn: NewTurn, last: LastTurn | null): Promise<HeadStart | null> {
  const { options } = turn;
  if (last === null || options.session !== undefined || options.restore !== undefined) return null;
  const { agents, settings } = hold.parts;
  const agent = agents.get(turn.agent ?? last.agent)?.agent;
  if (agent === undefined || hold.living(agent.name) === null) return null;
  const traits = await agent.traits();
  const foreseen = { id: turn.id, n: last.n + 1, attempt: 1 };
  const restored = await stillWarm({
    hold,
    agent,
    traits,
    settings: effectiveRestore(settings.restore, hold.conversation.restore, undefined),
    explicit: null,
    turn: foreseen,
    attempt: foreseen.attempt,
    rewind: null,
    shrink: 0,
    tried: [],
    lock: new LockWait(settings.lock),
    signal: hold.lease.lost,
  });
  if (restored === null) return null;
  return { traits, restored, ...sending(hold, foreseen, restored, restored.open.ref) };
}

/**
 * The session that is kept warm, when it has all of the history and stands where we left it. Null says only that this is not
 * known: `restore` finds out what is, and does something about it.
 */
async function stillWarm(request: RestoreRequest): Promise<(Restored & { ok: true }) | null> {
  const { hold, agent, traits } = request;
  const started = hold.parts.clock.monotonic();
  const [step] = (await planFor(request)).steps;
  if (step?.open.how !== 'live' || step.deliver.what !== 'nothing' || step.open.session.state === 'unsettled')
    return null;
  const row = step.open.session;
  const session = hold.living(agent.name)?.session;
  if (session === undefined) return null;
  const position = traits.position ? await session.position() : null;
  if (position !== (traits.position ? row.position : null)) return null;
  const before = position !== null ? 'proved' : traits.position ? 'counted' : step.proof;
  const open = { ...inLineage(row), session };
  const given = NOTHING_DELIVERED;
  const went = { rung: step.rung, sessionId: session.id, before, given, dropped: open.dropped } as const;
  const { preface, sent: delivered, dropped: leftOut } = given;
  return { ok: true, open, preface, delivered, receipt: receiptOf(request, started, went), leftOut };
}

/** Null also when it takes too long. */
export async function headStartSoon(hold: Hold, turn: NewTurn, last: LastTurn | null): Promise<HeadStart | null> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<null>((resolve) => {
    timer = setTimeout(resolve, hold.parts.settings.headStartMs, null);
  });
  try {
    return await Promise.race([headStart(hold, turn, last), late]);
  } finally {
    clearTimeout(timer);
  }
}
