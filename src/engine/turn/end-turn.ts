import type { ErrorCode, Failure } from '../../core/errors.ts';
import { wellFormed } from '../../core/input/well-formed.ts';
import { ofCompleted } from '../../core/limits/budget.ts';
import type { SandboxProcess } from '../../core/process.ts';
import { condensedTo } from '../../core/restore/condensed.ts';
import { NOTHING_OMITTED, type Omissions, type Receipt } from '../../core/restore/receipt.ts';
import type { ReceiptRung } from '../../core/restore/restore-settings.ts';
import { aside, type ContextUse, stateWithoutProcess } from '../../core/restore/session.ts';
import { type AgentTraits, canReopen } from '../../core/restore/traits.ts';
import { type Condensed, PartsBuilder, type RecordPart, type TurnRecord } from '../../core/turn/record.ts';
import type { Turn, TurnEnd } from '../../core/turn/turn.ts';
import { type EndKind, endOfSent } from '../../core/turn/turn-decision.ts';
import { NO_USAGE, type Usage } from '../../core/turn/usage.ts';
import type { Agent, SentPrompt } from '../../ports/agent.ts';
import type { SessionChange } from '../../ports/store/sessions.ts';
import type { Write } from '../../ports/store/writes.ts';
import { readableTail } from '../too-deep.ts';
import type { Held } from '../worker/held.ts';
import type { AttemptResult } from './attempt.ts';

// ── what the end of a turn writes: pure ────────────────────────────────────────────────────────────────────────────────

/** Everything that decides what the end of a turn writes. */
export interface EndFacts {
  readonly turn: Turn;
  readonly outcome: TurnEnd;
  readonly failure: Failure | null;
  readonly usage: Usage;
  /** Null: there is none to write. */
  readonly receipt: Receipt | null;
  /** For the record of the turn; null: it counts as never sent. */
  readonly said: Said | null;
  /** The prompt was sent, but the agent did not take it. */
  readonly untaken: boolean;
  /** The session that the turn counts for; null: none. `effect`: what the turn did to it; null: nothing, or that is written already. */
  readonly session: { readonly ref: string; readonly effect: SessionEffect | null } | null;
}

type Said = Pick<TurnRecord, 'parts' | 'sessionId' | 'startedAt' | 'endedAt' | 'recovered'>;

export interface SessionEffect {
  readonly was: 'told' | 'cut off' | 'refuted' | 'not told';
  readonly alive: boolean;
  readonly process: SandboxProcess | null;
  /** Its agent can open it again after its process has ended. */
  readonly reopens: boolean;
  /** The position in its storage now; null: not known; undefined: unchanged. */
  readonly position: string | null | undefined;
  /** Turns of the history that it lacks. */
  readonly dropped: number;
  readonly omitted: Omissions;
  /** What its agent replaced by a summary of its own; null: nothing. */
  readonly condensed: Condensed | null;
  /** What was added to its transcript file, and its adapter's note. */
  readonly copy: Pick<SessionChange, 'mirror' | 'memo'>;
  /** How full its context is; null: the turn has not shown it. */
  readonly context: ContextUse | null;
  /** Why it is closed with the turn; null: it is kept. */
  readonly closeReason: string | null;
}

/** Everything that ends a turn, for one commit: session and watermark, receipt, record and usage. */
export function endOf(facts: EndFacts): Write[] {
  const { turn, outcome, failure, receipt, said, untaken, session } = facts;
  const usage = outcome === 'completed' ? ofCompleted(facts.usage) : facts.usage;
  const writes: Write[] = [];
  if (session?.effect) writes.push({ write: 'change-session', ref: session.ref, ...afterTurn(facts, session.effect) });
  if (receipt !== null) writes.push({ write: 'receipt', receipt, turn: turn.id, session: null });
  const record: TurnRecord | null = said && {
    version: 1,
    n: turn.n,
    agent: turn.agent,
    outcome,
    prompt: turn.prompt,
    failure,
    usage,
    ...said,
  };
  const unsent = untaken ? ({ unsent: true } as const) : {};
  const end = { outcome, failure, record, session: session?.ref ?? null, usage, ...unsent };
  return [...writes, { write: 'end', turn: turn.id, end }];
}

/** Only a completed turn moves the watermark, with a position read back or a process still alive (R9). */
function afterTurn(
  { turn, outcome }: EndFacts,
  { was, alive, process, reopens, position, dropped, omitted, condensed, copy, context, closeReason }: SessionEffect,
): { change: SessionChange; reason: string | null } {
  const at = position === undefined ? {} : { position };
  const isKnown = alive || (position ?? null) !== null;
  const told = was === 'told' && isKnown ? { watermark: turn.n, dropped, omitted } : {};
  const known = { ...at, ...told, ...condensing(turn, condensed), ...copy, ...(context && { context }) };
  if (closeReason !== null) return { change: { ...known, ...aside('closed') }, reason: closeReason };
  const reasons: Record<SessionEffect['was'], string | null> = {
    told: null,
    'cut off': `turn ${turn.n} ended as ${outcome}`,
    refuted: `turn ${turn.n} ended as ${outcome}`,
    'not told': 'it did not take a prompt',
  };
  const unsettled = was === 'cut off';
  const open = { state: unsettled ? 'unsettled' : 'live', process } as const;
  const ended = aside(was === 'refuted' ? 'lost' : stateWithoutProcess({ reopens, unsettled }));
  const now = alive && was !== 'refuted' ? open : ended;
  return { change: { ...known, ...now }, reason: reasons[was] };
}

/** The codes of a turn that a limit stopped in the middle. */
const LIMITS: readonly ErrorCode[] = ['timed_out', 'stalled', 'over_budget'];

function condensing({ n }: Turn, condensed: Condensed | null): Pick<SessionChange, 'condensedTo'> {
  const last = condensedTo(n, condensed);
  return last === null ? {} : { condensedTo: last };
}

/** How a sent turn ended. A failure that was not read to its end is an interruption, and is not repeated (R6). */
export function outcomeOf(failure: Failure | null, seenToTheEnd: boolean): TurnEnd {
  if (failure === null) return 'completed';
  if (failure.code === 'cancelled' || failure.code === 'interrupted') return failure.code;
  if (LIMITS.includes(failure.code)) return 'interrupted';
  return seenToTheEnd ? 'failed' : 'interrupted';
}

/**
 * Why the session is closed with the turn; null: it is kept. It is closed if it lacks history because this turn alone asked for that, or
 * because no other step worked: later turns must not take it for a session with the history. `cutTurns`: how many turns it was not told,
 * or told shortened.
 */
export function closeReason({ options: { restore } }: Turn, rung: ReceiptRung, cutTurns: number): string | null {
  if (rung === 'fresh') return 'it was begun without the history';
  const asked = restore?.budgetTokens !== undefined || restore?.lastTurns !== undefined;
  return asked && cutTurns > 0 ? `${cutTurns} turns were left out or shortened for this turn alone` : null;
}

// ── ending ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

/** What is known of a turn, and how it ends. */
export interface Ending {
  readonly as: EndKind;
  readonly failure: Failure | null;
  /** The attempt that it ends with; null: nothing was sent. */
  readonly result: AttemptResult | null;
  readonly receipt: Receipt | null;
  readonly agent: Agent;
  readonly traits: AgentTraits;
  /** The session had all of the history before this turn, and was told nothing for it. */
  readonly sessionWasCurrent: boolean;
  /** Why the session is closed with the turn; null: it is kept. */
  readonly closeReason: string | null;
}

export async function endTurn(held: Held, turn: Turn, ending: Ending): Promise<void> {
  const { as, result, failure, receipt } = ending;
  if (as === 'unsent' || result === null) return endUnsent(held, turn, failure, receipt);
  if (as === 'untaken') return writeEnd(held, await untakenFacts(held, turn, ending, result));
  if (as === 'sent') {
    const facts = await sentFacts(held, turn, ending, result);
    // Everything was read from the session. It ends while the turn is stored; the worker waits for that before it releases the lease.
    if (held.endsWithTurn(ending.agent.name)) void result.session.close();
    return writeEnd(held, facts, result.title);
  }
  // The state of its session was written after that attempt. A change since then was made by somebody else (R10).
  const session = result.ref === null ? null : { ref: result.ref, effect: null };
  return writeEnd(
    held,
    { ...factsOf(turn, ending, result), said: saidIn(result, result.parts), session },
    result.title,
  );
}

/** Ends a turn that was not sent: it is not part of the history. */
export async function endUnsent(
  held: Held,
  turn: Turn,
  failure: Failure | null,
  receipt: Receipt | null,
): Promise<void> {
  const outcome = failure?.code === 'cancelled' || failure?.code === 'interrupted' ? failure.code : 'failed';
  const facts = {
    turn,
    outcome,
    failure,
    receipt,
    usage: NO_USAGE,
    said: null,
    untaken: false,
    session: null,
  } as const;
  await writeEnd(held, facts);
}

export async function writeEnd(held: Held, facts: EndFacts, title: string | null = null): Promise<void> {
  await held.lease.write(...endOf(facts));
  if (facts.said === null) return;
  const { conversation, parts } = held;
  held.historyGrewTo(facts.turn.n);
  if (title !== null) await parts.store.setTitle(conversation.owner, conversation.id, title, 'agent');
}

function factsOf(turn: Turn, { failure, receipt }: Ending, { outcome, harmless, usage }: AttemptResult) {
  const ended = outcomeOf(failure, outcome.kind === 'failed' || harmless);
  return { turn, outcome: ended, failure, receipt, usage, untaken: false };
}

function saidIn({ sessionId, startedAt, endedAt }: AttemptResult, parts: readonly RecordPart[]): Said {
  return { sessionId, startedAt, endedAt, parts };
}

/** Ends a turn that was sent. The agent's storage is read for the position, and for output that nobody saw. */
async function sentFacts(held: Held, turn: Turn, ending: Ending, result: AttemptResult): Promise<EndFacts> {
  const { agent, traits, closeReason } = ending;
  const { session, ref } = result;
  // Reading the agent's storage takes a while, so the output is stored before. Otherwise output and end are one commit.
  if (traits.position || session.transcript !== undefined) await held.lease.drained();
  const storage = await readStorage(held, agent, traits, result);
  const { usage, isUsageReported, parts: seen } = result;
  const { found, ended, usageFound } = storage;
  const known = { seen, usage, isUsageReported, found, ended, usageFound };
  const end = endOfSent({ failure: ending.failure, crashed: false, ...known });
  const { failure, recovered } = end;
  const said = { ...saidIn(result, end.parts), ...(recovered && { recovered }) };
  const facts = { ...factsOf(turn, { ...ending, failure }, result), usage: end.usage, said };
  const refuted = failure?.code === 'context_refuted';
  const effect: SessionEffect = {
    was: failure === null ? 'told' : refuted ? 'refuted' : 'cut off',
    alive: session.alive,
    process: session.process,
    reopens: canReopen(traits),
    position: storage.position,
    dropped: result.receipt.dropped,
    omitted: { shortened: result.receipt.shortened, leftOut: result.receipt.leftOut },
    condensed: result.condensed ?? storage.condensed,
    context: result.context,
    copy: failure === null && ref !== null ? await mirror(result) : {},
    closeReason,
  };
  if (closeReason !== null) await held.end(agent, session);
  // The agent has not named its session, so nobody would find its process later.
  else if (ref === null) await session.close();
  return { ...facts, session: ref === null ? null : { ref, effect } };
}

/**
 * Ends a turn whose prompt the agent did not take. Its session is kept if it was recorded with the full history before. If it got a
 * block for this prompt, it is closed, because its context is unknown.
 */
async function untakenFacts(held: Held, turn: Turn, ending: Ending, result: AttemptResult): Promise<EndFacts> {
  const { agent, traits, sessionWasCurrent } = ending;
  const { session, ref, outcome } = result;
  if (!sessionWasCurrent || !session.alive) await held.end(agent, session);
  const facts = { ...factsOf(turn, ending, result), said: null, untaken: true };
  if (ref === null) return { ...facts, session: null };
  // Unless the agent says that it stored the refusal, its position is unchanged. If it moved, somebody else moved it.
  const noted = (sessionWasCurrent && 'position' in outcome ? outcome.position : null) ?? undefined;
  const effect: SessionEffect = {
    was: 'not told',
    alive: session.alive,
    process: session.process,
    reopens: canReopen(traits),
    position: noted,
    dropped: 0,
    omitted: NOTHING_OMITTED,
    condensed: result.condensed,
    context: result.context,
    copy: noted === undefined ? {} : await mirror(result),
    closeReason: sessionWasCurrent ? null : 'it did not take the prompt that it was opened for',
  };
  return { ...facts, session: { ref, effect } };
}

/** What was added to the agent's own transcript file, and its adapter's note: stored with the end of the turn. */
async function mirror({ session, mirrored }: AttemptResult): Promise<SessionEffect['copy']> {
  const bytes = (await session.transcript?.(mirrored)) ?? null;
  const memo = session.memo === undefined ? {} : { memo: session.memo };
  return bytes === null ? memo : { ...memo, mirror: { from: mirrored, bytes } };
}

// ── between two attempts, and after a crash ────────────────────────────────────────────────────────────────────────────

/** Records before the next attempt that the session has seen a failed prompt. True: its storage contains that prompt now. */
export async function noteFailedAttempt(
  held: Held,
  turn: Turn,
  agent: Agent,
  traits: AgentTraits,
  result: AttemptResult,
) {
  if (result.ref === null) return false;
  const { session } = result;
  const { position } = await readStorage(held, agent, traits, result);
  // If its position is unchanged, it has not seen the prompt: it was locked, for example.
  const moved = traits.position && position !== result.sent.position;
  if (traits.position && session.alive && !moved) return false;
  const known = { position, ...condensing(turn, result.condensed) };
  const noted = { ref: result.ref, reason: 'an attempt failed' };
  if (session.alive) {
    const change = { ...known, state: 'unsettled', process: session.process } as const;
    await held.lease.write({ write: 'change-session', ...noted, change });
  } else {
    const state = stateWithoutProcess({ reopens: canReopen(traits), unsettled: true });
    await held.putAside(agent, { ...noted, session, state, known });
  }
  return moved;
}

interface Stored {
  readonly position: string | null;
  readonly found: RecordPart[];
  readonly condensed: Condensed | null;
  /** The storage shows that the agent finished the turn by itself. */
  readonly ended: boolean;
  readonly usageFound: Partial<Usage>;
}

const NOTHING_FOUND = { found: [], condensed: null, ended: false, usageFound: {} };

/** The position in the agent's storage and, if the stream was lost, the part of the turn that we did not see. */
async function readStorage(
  held: Held,
  agent: Agent,
  traits: AgentTraits,
  { session, sessionId, failure, sent, outcome }: AttemptResult,
): Promise<Stored> {
  if (!traits.position || sessionId === null) return { position: null, ...NOTHING_FOUND };
  if (failure !== null && !session.alive) return readTail(held, agent, sessionId, sent);
  const reported = 'position' in outcome ? outcome.position : undefined;
  return { position: reported === undefined ? await session.position() : reported, ...NOTHING_FOUND };
}

/** What the agent's own storage contains of a turn that nobody saw. */
export async function readTail(held: Held, agent: Agent, sessionId: string, sent: SentPrompt): Promise<Stored> {
  const tail = await readableTail(agent, sessionId, sent, await held.openSandbox());
  const parts = new PartsBuilder();
  for (const update of wellFormed(tail?.updates ?? [])) parts.add(update);
  const { condensed } = parts;
  const position = tail?.position ?? null;
  return { position, found: parts.parts(), condensed, ended: tail?.ended ?? false, usageFound: tail?.usage ?? {} };
}
