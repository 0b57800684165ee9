import { setTimeout as delay } from 'node:timers/promises';
import { asSentence, type Failure, failureOf, hasCode, noSuchAgent, ThroughlineError } from '../../core/errors.ts';
import { type DayLimit, dayLimits, effectivePerDay, judgeSpending, perDayBy } from '../../core/limits/spending.ts';
import { afterLockWait, nextLockWait } from '../../core/restore/lock-wait.ts';
import type { Receipt } from '../../core/restore/receipt.ts';
import { type EffectiveRestore, effectiveRestore } from '../../core/restore/restore-settings.ts';
import type { AgentTraits } from '../../core/restore/traits.ts';
import { type Choices, choicesOf, howToChoose, mergeChoices, NOTHING_TO_CHOOSE } from '../../core/turn/choices.ts';
import type { Turn } from '../../core/turn/turn.ts';
import { type AttemptFacts, decideAfterAttempt, stopped, type TurnVerdict } from '../../core/turn/turn-decision.ts';
import { NO_USAGE } from '../../core/turn/usage.ts';
import type { Agent, AgentSession } from '../../ports/agent.ts';
import type { TurnToRun } from '../../ports/store/leases.ts';
import { rewindAtFirst, rewindOf } from '../restore/plan.ts';
import {
  type EarlierAttempts,
  NO_EARLIER_ATTEMPTS,
  type Restored,
  type RestoreRequest,
  type RewindTo,
} from '../restore/request.ts';
import { restore } from '../restore/restore.ts';
import type { Begun, Held } from '../worker/held.ts';
import { type AttemptResult, isUntaken, runAttempt } from './attempt.ts';
import { closeReason, endTurn, endUnsent, noteFailedAttempt } from './end-turn.ts';
import { type Stops, TurnSignal } from './turn-signal.ts';

/**
 * Runs one turn to its one end:
 *
 *   restore ─▶ the session has everything, and a receipt says how; or the turn fails and nothing was sent
 *   attempt ─▶ the fact of sending is stored, then the prompt leaves; what comes back is stored as it comes
 *   decide  ─▶ end, or try again within the turn (R6); `decideAfterAttempt` has the rules
 *   apply   ─▶ the end with record, usage, session and watermark in one commit; or what the next attempt needs
 */
export async function runTurn(held: Held, begun: Begun, stops: Stops): Promise<void> {
  const { turn } = begun;
  const signal = new TurnSignal(held, begun, stops);
  held.runs(begun, signal);
  try {
    const limits = await spendingLimits(held, begun);
    const over = judgeSpending(limits, turn.agent, held.parts.clock.now());
    if (over !== null && signal.stop === null) return await endUnsent(held, turn, over, null);
    const agent = await findAgent(held, turn, signal);
    if ('failure' in agent) return await endWithoutAgent(held, turn, signal, agent.failure);
    const run = await prepare(held, begun, agent, signal, limits);
    for (let course = run.first; ; ) {
      const attempted = await makeAttempt(run, course);
      held.lease.lost.throwIfAborted();
      const verdict = await decideAndWait(run, course, attempted);
      if (verdict.next === 'leave') return await leave(run, attempted);
      if (verdict.next === 'end') return await end(run, course, attempted, verdict);
      course = await again(run, course, attempted, verdict);
    }
  } finally {
    held.apply({ type: 'ended' });
    signal.close();
  }
}

/** What stays the same through all attempts of a turn. */
interface Run {
  readonly held: Held;
  readonly turn: Turn;
  /** Whether the turn was cancelled or replaced just before it began. */
  readonly takenAway: Promise<boolean>;
  readonly agent: Agent;
  readonly traits: AgentTraits;
  readonly restoring: EffectiveRestore;
  /** The choices of the conversation; and these together with the turn's own (R7). */
  readonly kept: Choices;
  readonly choices: Choices;
  readonly signal: TurnSignal;
  readonly limits: readonly DayLimit[];
  readonly first: Course;
}

/** What one attempt hands to the next. */
interface Course {
  readonly attempt: number;
  readonly tries: number;
  readonly rewind: RewindTo | null;
  readonly shrink: number;
  readonly earlier: EarlierAttempts;
  /** The attempt before this one, which was sent; null: there was none. */
  readonly last: AttemptResult | null;
}

/** The result of one attempt. Without `sent`, no prompt was sent; without a failure as well, it was stopped before that. */
interface Attempted {
  readonly sent: { readonly result: AttemptResult; readonly restored: Restored } | null;
  readonly failure: Failure | null;
  readonly receipt: Receipt | null;
}

/** The limits of spending per day that hold for the turn, with what was spent today. Usually there are none. */
async function spendingLimits({ parts, conversation }: Held, { facts }: TurnToRun): Promise<DayLimit[]> {
  const { owner, id } = conversation;
  const perDay = effectivePerDay(perDayBy(parts.settings.spending, owner), facts.limitPerDay);
  return perDay === null ? [] : dayLimits(perDay, await parts.store.spending(owner, id));
}

/** The agent of the turn, in a sandbox that is ready for it. */
async function findAgent(held: Held, { agent: name, options }: Turn, stops: TurnSignal) {
  const { agents } = held.parts;
  const agent = agents.get(name)?.agent;
  const { signal } = stops;
  const heard = () => stops.heard();
  try {
    if (agent === undefined) throw noSuchAgent(name, agents.keys());
    await held.readySandbox(signal, heard);
    const { kept, ...own } = choicesOf(options);
    const { model } = mergeChoices(kept ?? {}, own);
    return { agent, traits: await agent.traits(await held.openSandbox(), signal, model) };
  } catch (error) {
    if (error instanceof ThroughlineError) return { failure: failureOf(error) };
    throw error;
  }
}

/** Ends a turn whose agent or sandbox cannot be used. */
async function endWithoutAgent(held: Held, turn: Turn, { stop }: TurnSignal, failure: Failure): Promise<void> {
  held.lease.lost.throwIfAborted();
  // The turn stays queued for the next worker.
  if (stop === 'shutdown') return;
  await endUnsent(held, turn, stop === null ? failure : stopped(stop), null);
}

async function prepare(
  held: Held,
  { turn, takenAway }: Begun,
  { agent, traits }: { agent: Agent; traits: AgentTraits },
  signal: TurnSignal,
  limits: readonly DayLimit[],
): Promise<Run> {
  const { settings } = held.parts;
  const restoring = effectiveRestore(settings.restore, held.conversation.restore, turn.options.restore);
  const rewind = await rewindAtFirst(held, turn, traits, restoring);
  const { kept = {}, ...own } = choicesOf(turn.options);
  const chosen = { kept, choices: mergeChoices(kept, own) };
  const first = { attempt: turn.attempt, tries: 1, rewind, shrink: 0, earlier: NO_EARLIER_ATTEMPTS, last: null };
  return { held, turn, takenAway, agent, traits, restoring, ...chosen, signal, limits, first };
}

/** Brings a session to the head and sets the choices of the turn; otherwise returns the failure. */
async function restoreChosen(run: Run, { attempt, rewind, shrink, earlier }: Course) {
  const { held, turn, agent, traits, choices, signal } = run;
  const { session: explicit = null, newSession = null } = turn.options;
  const known = {
    ...{ held, agent, traits, turn, explicit, newSession, choices, attempt, rewind, shrink },
    settings: run.restoring,
    signal: signal.signal,
    heard: () => signal.heard(),
  };
  for (let first: Receipt | null = null; ; ) {
    const asked: RestoreRequest = { ...known, earlier: first ?? earlier };
    const restored = await restore(asked).catch((error) => stoppedOrFailed(error, signal));
    if ('failure' in restored) return restored;
    const chosen = signal.stop ? 'set' : await choose(run, restored.open.session);
    if (chosen === 'set') return restored;
    if (chosen !== 'reopen') return { failure: chosen, receipt: restored.receipt };
    if (first !== null) throw new Error(`${agent.name} opened a session without the choices that it was given.`);
    await held.endLive(agent);
    first = restored.receipt;
  }
}

/** Brings a session to the head and sends the prompt. Nothing is sent once the turn has to stop. */
async function makeAttempt(run: Run, course: Course): Promise<Attempted> {
  const { held, turn, takenAway, agent, traits, restoring, signal, limits } = run;
  // If the lease is lost, the sessions belong to the next holder: a restore would end its processes.
  held.lease.lost.throwIfAborted();
  if (signal.stop) return unsent(null);
  const restored = await restoreChosen(run, course);
  if ('failure' in restored) return unsent(restored.failure, restored.receipt);
  const { session } = restored.open;
  if (signal.stop) {
    await leaveUnsent(run, session);
    return unsent(null);
  }
  const required = restoring.policy === 'required';
  const spent = course.last?.usage ?? NO_USAGE;
  const request = {
    ...{ held, agent, traits, signal, limits, required, restored, spent, takenAway },
    turn: { ...turn, attempt: course.attempt },
  };
  try {
    const result = await runAttempt(request);
    // Only this process can end a session that has no id yet.
    if (held.lease.lost.aborted) await result.session.kill();
    return { sent: { result, restored }, failure: result.failure, receipt: result.receipt };
  } catch (error) {
    const wasTakenAway = await takenAway;
    if (wasTakenAway) await leaveUnsent(run, session);
    if (wasTakenAway || !hasCode(error, 'conflict')) throw error;
    // The agent's new session has an id that belongs to another conversation. Nothing was sent.
    const hint = 'Nothing was sent. A native session belongs to one conversation.';
    return unsent({ code: 'refused', message: error.message, hint }, restored.receipt);
  }
}

/** Nothing was sent to the session. A living one stays for the next turn, without the choices of this one (R7). */
async function leaveUnsent({ held, agent, kept }: Run, session: AgentSession): Promise<void> {
  if (held.live.get(agent.name)?.session !== session) return session.close();
  const isReset = session.choose === undefined || (await session.choose(kept)) === 'set';
  if (!isReset) await held.endLive(agent);
}

/** Sets the choices of the turn. A failure: the agent does not have them. */
async function choose(run: Run, session: AgentSession): Promise<Failure | 'set' | 'reopen'> {
  const { agent, choices } = run;
  const nothing = Object.keys(choices).length === 0;
  const chosen =
    session.choose === undefined ? (nothing ? 'set' : { why: NOTHING_TO_CHOOSE }) : await session.choose(choices);
  if (typeof chosen === 'string') return chosen;
  // Some of it may have been set.
  await leaveUnsent(run, session);
  const { kept, ...own } = choicesOf(run.turn.options);
  const hint = howToChoose(own, kept, chosen.why !== NOTHING_TO_CHOOSE);
  return { code: 'refused', message: asSentence(`${agent.name}: ${chosen.why}`), hint };
}

function unsent(failure: Failure | null, receipt: Receipt | null = null): Attempted {
  return { sent: null, failure, receipt };
}

/** Why a restore ended early: it was stopped, or the agent could not be started. Throws everything else. */
function stoppedOrFailed(error: unknown, { stop }: TurnSignal): { failure: Failure | null; receipt: null } {
  if (stop) return { failure: null, receipt: null };
  if (!(error instanceof ThroughlineError) || error.code === 'lease_lost') throw error;
  return { failure: failureOf(error), receipt: null };
}

/** The verdict on an attempt, after the wait before the next one. If the turn is stopped during that wait, it is decided again. */
async function decideAndWait(run: Run, course: Course, attempted: Attempted): Promise<TurnVerdict> {
  const { signal } = run;
  const verdict = decideAfterAttempt(factsOf(run, course, attempted));
  if (verdict.next !== 'again') return verdict;
  if (verdict.waitMs > 0) await delay(verdict.waitMs, undefined, { signal: signal.signal }).catch(() => {});
  return signal.stop ? decideAfterAttempt(factsOf(run, course, attempted)) : verdict;
}

function factsOf(
  { held, turn, traits, signal }: Run,
  course: Course,
  { sent, failure, receipt }: Attempted,
): AttemptFacts {
  const { attempts, retryMs, lock } = held.parts.settings;
  return {
    stop: signal.stop,
    failure,
    prompt: sent && {
      harmless: sent.result.harmless,
      again: sent.result.again,
      untaken: isUntaken(sent.result.outcome),
      delivered: sent.result.receipt.delivered,
      images: sent.restored.images,
      reusable: !traits.rewind || sent.result.sent.position !== null,
    },
    sentBefore: course.last !== null,
    isFirst: turn.attempt === 1,
    tries: course.tries,
    mostAttempts: attempts,
    retryMs,
    lockWaitMs: nextLockWait(lock, (receipt ?? course.earlier).lockWaits),
    shrunk: course.shrink > 0,
    chosenId: turn.options.newSession !== undefined,
  };
}

/** The turn stays queued for the next worker. The result of its restore is recorded. */
async function leave({ held, turn }: Run, { receipt }: Attempted): Promise<void> {
  if (receipt !== null) await held.lease.write({ write: 'receipt', receipt, turn: turn.id, session: null });
}

async function end(run: Run, { last }: Course, attempted: Attempted, verdict: TurnVerdict & { next: 'end' }) {
  const { held, turn, agent, traits } = run;
  const { sent } = attempted;
  const restored = sent?.restored;
  const receipt = attempted.receipt ?? last?.receipt ?? null;
  await endTurn(held, turn, {
    as: verdict.as,
    failure: verdict.failure,
    result: sent?.result ?? last,
    // If it is the same object, it was stored with the prompt, and the turn has added nothing.
    receipt: receipt === restored?.receipt ? null : receipt,
    agent,
    traits,
    sessionWasCurrent: restored !== undefined && sessionWasCurrent(held, restored),
    closeReason: restored === undefined ? null : closeReason(turn, restored.receipt.rung, restored.cutTurns),
  });
}

async function again(
  run: Run,
  course: Course,
  { sent }: Attempted,
  { aside, tried, shrink, failure, waitMs }: TurnVerdict & { next: 'again' },
): Promise<Course> {
  const { held, turn, agent, traits } = run;
  const { result } = sent as NonNullable<Attempted['sent']>;
  const { session, ref, sessionId, receipt } = result;
  const failed = tried === null ? [] : [{ rung: receipt.rung, sessionId, failure: tried }];
  // The wait before this attempt is counted like those while a session is opened.
  const isLocked = failure.code === 'session_locked';
  if (aside !== null) await held.putAside(agent, { ref, session, ...aside, force: true });
  const holdsPrompt = aside === null && (await noteFailedAttempt(held, turn, agent, traits, result));
  await held.lease.write({ write: 'retry', turn: turn.id, failure });
  return {
    attempt: course.attempt + 1,
    tries: course.tries + 1,
    rewind: holdsPrompt && traits.rewind ? rewindOf(ref, result.sent) : null,
    shrink: course.shrink + (shrink ? 1 : 0),
    earlier: {
      tried: [...receipt.tried, ...failed],
      lockWaits: isLocked ? afterLockWait(receipt.lockWaits, waitMs) : receipt.lockWaits,
    },
    last: aside === null ? result : { ...result, ref: null },
  };
}

/** The session was in the lineage and had the whole history before this turn, so nothing was delivered to it. */
function sessionWasCurrent({ conversation }: Held, { open, receipt }: Restored): boolean {
  return open.ref !== null && open.watermark === conversation.head && receipt.delivered === 0 && !receipt.unsettled;
}
