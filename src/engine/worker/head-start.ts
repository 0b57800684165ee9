import type { Step } from '../../core/continuity.ts';
import { effectiveRestore } from '../../core/restore-settings.ts';
import type { Session } from '../../core/session.ts';
import type { AgentTraits } from '../../core/traits.ts';
import type { Turn } from '../../core/turn.ts';
import type { Agent } from '../../ports/agent.ts';
import type { NewTurn, Onward } from '../../ports/store/turns.ts';
import { isStorageFault } from '../faults.ts';
import { NOTHING_DELIVERED } from '../restore/deliver.ts';
import { LockWait } from '../restore/lock-wait.ts';
import { inLineage } from '../restore/open/lineage.ts';
import { planFor, receiptOf } from '../restore/plan.ts';
import type { Restored } from '../restore/restore.ts';
import { type SentPromptFact, sending } from '../turn/sending.ts';
import type { Hold, LiveSession } from './hold.ts';

/**
 * What a turn needs to be sent in the very commit that accepts it: its session is warm, and was found to be where we left it.
 * The number and the agent of the turn are foreseen; where the store gives it others, it refuses these writes, and the turn
 * goes the usual way.
 */
export interface HeadStart {
  readonly traits: AgentTraits;
  readonly restored: Restored & { ok: true };
  readonly sent: SentPromptFact;
  readonly ahead: NonNullable<Onward['ahead']>;
}

/** The session that the next turn would go on in, if it asks for nothing else: it has all of the history. */
export interface Outlook {
  readonly agent: Agent;
  readonly traits: AgentTraits;
  readonly live: LiveSession;
  readonly row: Session;
  readonly step: Step;
}

type LastTurn = Pick<Turn, 'n' | 'agent'>;
type Foreseen = Pick<Turn, 'id' | 'n' | 'attempt'>;

/**
 * What is known of the next turn before it comes; null: it will have to be restored. It holds for as long as the conversation is
 * held and nothing is done with it, because only its holder writes its sessions.
 */
export async function lookAhead(hold: Hold, agentName: string): Promise<Outlook | null> {
  const agent = hold.parts.agents.get(agentName)?.agent;
  const live = agent === undefined ? null : hold.living(agent.name);
  if (agent === undefined || live === null) return null;
  const traits = await agent.traits();
  const settings = effectiveRestore(hold.parts.settings.restore, hold.conversation.restore, undefined);
  const plan = await planFor({ hold, agent, traits, settings, explicit: null, rewind: null }).catch(orUnknown);
  const step = plan?.steps[0];
  if (step?.open.how !== 'live' || step.deliver.what !== 'nothing' || step.open.session.state === 'unsettled')
    return null;
  return { agent, traits, live, row: step.open.session, step };
}

/** What the storage cannot say just now is found out when the turn is restored. */
function orUnknown(error: unknown): null {
  if (isStorageFault(error)) return null;
  throw error;
}

/** Nothing is opened, written or asked for here, so it may come to nothing at any point: null. */
async function headStart(
  hold: Hold,
  turn: NewTurn,
  last: LastTurn | null,
  known: Promise<Outlook | null> | null,
): Promise<HeadStart | null> {
  const { options } = turn;
  if (last === null || options.session !== undefined || options.restore !== undefined) return null;
  const agent = turn.agent ?? last.agent;
  const outlook = await (known !== null && agent === last.agent ? known : lookAhead(hold, agent));
  if (outlook === null) return null;
  const foreseen = { id: turn.id, n: last.n + 1, attempt: 1 };
  const restored = await stillWarm(hold, outlook, foreseen);
  if (restored === null) return null;
  const { sent, writes } = sending(hold, foreseen, restored, restored.open.ref);
  return { traits: outlook.traits, restored, sent, ahead: { n: foreseen.n, agent, writes } };
}

/**
 * The session that is kept warm, when it stands where we left it. Null says only that this is not known: `restore` finds out what
 * is, and does something about it.
 */
async function stillWarm(
  hold: Hold,
  { agent, traits, live, row, step }: Outlook,
  turn: Foreseen,
): Promise<(Restored & { ok: true }) | null> {
  const started = hold.parts.clock.monotonic();
  const { session } = live;
  if (hold.living(agent.name) !== live) return null;
  const position = traits.position ? await session.position() : null;
  if (position !== (traits.position ? row.position : null)) return null;
  const before = position !== null ? 'proved' : traits.position ? 'counted' : step.proof;
  const open = { ...inLineage(row), session };
  const given = NOTHING_DELIVERED;
  const request = { hold, agent, turn, attempt: turn.attempt, tried: [], lock: new LockWait(hold.parts.settings.lock) };
  const went = { rung: step.rung, sessionId: session.id, before, given, dropped: open.dropped } as const;
  const { preface, sent: delivered, dropped: leftOut } = given;
  return { ok: true, open, preface, delivered, receipt: receiptOf(request, started, went), leftOut };
}

/** Null also when it takes too long. */
export async function headStartSoon(
  hold: Hold,
  turn: NewTurn,
  last: LastTurn | null,
  known: Promise<Outlook | null> | null,
): Promise<HeadStart | null> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<null>((resolve) => {
    timer = setTimeout(resolve, hold.parts.settings.headStartMs, null);
  });
  try {
    return await Promise.race([headStart(hold, turn, last, known), late]);
  } finally {
    clearTimeout(timer);
  }
}
