import type { Failure } from '../../core/errors.ts';
import type { Receipt } from '../../core/receipt.ts';
import { mergeParts, PartsBuilder, type RecordPart, type TurnRecord } from '../../core/record.ts';
import type { AgentTraits } from '../../core/traits.ts';
import type { Turn, TurnEnd } from '../../core/turn.ts';
import { NO_USAGE } from '../../core/usage.ts';
import type { Agent, SentPrompt } from '../../ports/agent.ts';
import type { SessionChange } from '../../ports/store/sessions.ts';
import type { Write } from '../../ports/store/writes.ts';
import type { Hold } from '../worker/hold.ts';
import type { AttemptResult } from './attempt.ts';

/** Ends a turn of which nothing was sent in this attempt: it is no part of the history. */
export async function endUnsent(hold: Hold, turn: Turn, failure: Failure, receipt: Receipt | null): Promise<void> {
  const outcome: TurnEnd = failure.code === 'cancelled' || failure.code === 'interrupted' ? failure.code : 'failed';
  const writes: Write[] = [];
  if (receipt) writes.push({ write: 'receipt', receipt, turn: turn.id, session: null });
  writes.push({ write: 'end', turn: turn.id, end: { outcome, failure, record: null, session: null, usage: NO_USAGE } });
  await hold.lease.write(...writes);
}

/**
 * Ends a turn that was sent: the record, the session and its watermark, and the receipt, in one commit. `passing`: why the
 * session is closed with it; null: it is kept.
 */
export async function endTurn(
  hold: Hold,
  agent: Agent,
  traits: AgentTraits,
  turn: Turn,
  result: AttemptResult,
  passing: string | null,
): Promise<void> {
  const outcome = outcomeOf(result);
  const completed = outcome === 'completed';
  const { session, ref } = result;
  // What it said comes first: whoever waits for that need not wait until its storage was read.
  await hold.lease.settled();
  const storage = await readStorage(hold, agent, traits, result);
  const parts = completed ? result.parts : mergeParts(result.parts, storage.found);
  const writes: Write[] = [];
  if (ref !== null) {
    const refuted = result.failure?.code === 'context_refuted';
    const change = completed
      ? settled(turn.n, result.receipt.dropped, storage.position, session.alive, traits)
      : refuted
        ? ({ state: 'lost', position: storage.position } as const)
        : unsettled(storage.position, session.alive, traits);
    const reason = passing ?? (completed ? null : `turn ${turn.n} ended as ${outcome}`);
    const process = session.alive ? session.process : null;
    const copy = completed ? await mirror(result) : {};
    const closed = passing === null ? { process } : ({ process: null, state: 'closed' } as const);
    writes.push({ write: 'change-session', ref, change: { ...change, ...copy, ...closed }, reason });
  }
  if (passing !== null) {
    hold.live.delete(agent.name);
    await session.close();
  }
  await writeEnd(hold, turn, result, parts, writes);
}

/**
 * Ends a turn whose prompt the agent has not taken: it counts as never sent. Its session is kept where it was on record with all
 * of the history before (`hadAll`); one that was told anything for this very prompt is closed, for nobody knows what it knows.
 */
export async function endUntaken(
  hold: Hold,
  agent: Agent,
  traits: AgentTraits,
  turn: Turn,
  result: AttemptResult,
  hadAll: boolean,
): Promise<void> {
  const { ref, session, failure, usage, receipt } = result;
  const writes: Write[] = [];
  if (!hadAll || !session.alive) {
    hold.live.delete(agent.name);
    await session.close();
  }
  if (ref !== null && !hadAll) {
    const reason = 'it did not take the prompt that it was opened for';
    writes.push({ write: 'change-session', ref, change: { state: 'closed', process: null }, reason });
  } else if (ref !== null) {
    // Unless the agent says that it has noted the refusal, it stands where it stood: whoever has moved it since, it was not us.
    const at = 'position' in result.outcome ? (result.outcome.position ?? null) : null;
    const noted = at === null ? {} : { position: at, ...(await mirror(result)) };
    const state = session.alive ? 'live' : traits.resume || traits.load ? 'dormant' : 'lost';
    const process = session.alive ? session.process : null;
    writes.push({
      write: 'change-session',
      ref,
      change: { state, process, ...noted },
      reason: 'it did not take a prompt',
    });
  }
  writes.push({ write: 'receipt', receipt, turn: turn.id, session: ref });
  const end = { outcome: outcomeOf(result), failure, record: null, session: ref, usage, unsent: true } as const;
  writes.push({ write: 'end', turn: turn.id, end });
  await hold.lease.write(...writes);
}

/** What has come to the agent's own transcript file, and its adapter's note: kept with the end of the turn. */
async function mirror({ session, mirrored }: AttemptResult): Promise<SessionChange> {
  const bytes = (await session.transcript?.(mirrored)) ?? null;
  const memo = session.memo === undefined ? {} : { memo: session.memo };
  return bytes === null ? memo : { ...memo, mirror: { from: mirrored, bytes } };
}

/**
 * Ends a turn whose last attempt was over and done with (`unsettle`) before the next one could be made. What its session was
 * like is written since then; whoever has used it meanwhile must not be taken for us, so it is not looked at again (R10).
 */
export async function endWithout(hold: Hold, turn: Turn, last: AttemptResult): Promise<void> {
  await writeEnd(hold, turn, last, last.parts, []);
}

async function writeEnd(
  hold: Hold,
  turn: Turn,
  result: AttemptResult,
  parts: readonly RecordPart[],
  writes: Write[],
): Promise<void> {
  const outcome = outcomeOf(result);
  const record = recordOf(turn, outcome, result.failure, parts, result);
  writes.push({ write: 'receipt', receipt: result.receipt, turn: turn.id, session: null });
  writes.push({
    write: 'end',
    turn: turn.id,
    end: { outcome, failure: result.failure, record, session: result.ref, usage: result.usage },
  });
  await hold.lease.write(...writes);
  hold.conversation = { ...hold.conversation, head: turn.n, historyCount: hold.conversation.historyCount + 1 };
  const { owner, id } = hold.conversation;
  if (result.title !== null) await hold.parts.store.setTitle(owner, id, result.title, 'agent');
}

/**
 * After an attempt that will be followed by another: the session has seen a prompt that came to nothing. Returns whether its
 * storage holds that prompt now, as far as can be read.
 */
export async function unsettle(hold: Hold, agent: Agent, traits: AgentTraits, result: AttemptResult): Promise<boolean> {
  if (result.ref === null) return false;
  const { session } = result;
  const { position } = await readStorage(hold, agent, traits, result);
  // Its storage stands where it stood: a session that was only locked has not seen the prompt.
  const moved = traits.position && position !== result.sent.position;
  if (traits.position && session.alive && !moved) return false;
  const change = { ...unsettled(position, session.alive, traits), process: session.alive ? session.process : null };
  await hold.lease.write({ write: 'change-session', ref: result.ref, change, reason: 'an attempt failed' });
  return moved;
}

function outcomeOf(result: AttemptResult): TurnEnd {
  const { failure, outcome, harmless } = result;
  if (failure === null) return 'completed';
  if (failure.code === 'cancelled' || failure.code === 'interrupted') return failure.code;
  // The agent told us how it ended, or we saw that nothing happened: a failure. Else nobody knows, and nobody repeats it.
  return outcome.kind === 'failed' || harmless ? 'failed' : 'interrupted';
}

/** Only a completed turn moves the watermark, with a position read back or a process still alive (R9). */
function settled(
  n: number,
  dropped: number,
  position: string | null,
  alive: boolean,
  traits: AgentTraits,
): SessionChange {
  const known = position !== null || alive;
  const state = alive ? 'live' : traits.resume || traits.load ? 'dormant' : 'lost';
  return known ? { state, watermark: n, dropped, position } : { state, position };
}

function unsettled(position: string | null, alive: boolean, traits: AgentTraits): SessionChange {
  return { state: alive || traits.resume || traits.load ? 'unsettled' : 'lost', position };
}

/** Where the agent's storage stands, and, when the stream was lost, what it holds of the turn that we did not see. */
async function readStorage(
  hold: Hold,
  agent: Agent,
  traits: AgentTraits,
  { session, sessionId, failure, sent, outcome }: AttemptResult,
): Promise<{ position: string | null; found: RecordPart[] }> {
  if (!traits.position || sessionId === null) return { position: null, found: [] };
  const told = 'position' in outcome ? outcome.position : undefined;
  if (told !== undefined && (failure === null || session.alive)) return { position: told, found: [] };
  if (failure === null || session.alive) return { position: await session.position(), found: [] };
  return readTail(hold, agent, sessionId, sent);
}

/** What the agent's own storage holds of a prompt: the part of a turn that nobody saw. */
export async function readTail(
  hold: Hold,
  agent: Agent,
  sessionId: string,
  sent: SentPrompt,
): Promise<{ position: string | null; found: RecordPart[] }> {
  const tail = await agent.tail(sessionId, sent, await hold.openSandbox());
  const parts = new PartsBuilder();
  for (const update of tail?.updates ?? []) parts.add(update);
  return { position: tail?.position ?? null, found: parts.parts() };
}

export function recordOf(
  turn: Turn,
  outcome: TurnEnd,
  failure: Failure | null,
  parts: readonly RecordPart[],
  run: {
    readonly sessionId: string | null;
    readonly usage: TurnRecord['usage'];
    readonly startedAt: number;
    readonly endedAt: number;
  },
): TurnRecord {
  const { sessionId, usage, startedAt, endedAt } = run;
  return {
    version: 1,
    n: turn.n,
    agent: turn.agent,
    sessionId,
    outcome,
    prompt: turn.prompt,
    parts,
    failure,
    usage,
    startedAt,
    endedAt,
  };
}
