import { setTimeout as delay } from 'node:timers/promises';
import type { Failure } from '../../core/errors.ts';
import { failureOf, ThroughlineError } from '../../core/errors.ts';
import type { Receipt, Tried } from '../../core/receipt.ts';
import { effectiveRestore, type RestoreSettings } from '../../core/restore-settings.ts';
import type { AgentTraits } from '../../core/traits.ts';
import type { Turn } from '../../core/turn.ts';
import { NO_USAGE, type Usage } from '../../core/usage.ts';
import type { Agent, AgentSession } from '../../ports/agent.ts';
import type { Changes } from '../reading/changes.ts';
import { LockWait } from '../restore/lock-wait.ts';
import { type Restored, type RestoreRequest, restore } from '../restore/restore.ts';
import { rewindOf, rewindOfEarlier, rewindOfFailed } from '../restore/rewind.ts';
import type { HeadStart } from '../worker/head-start.ts';
import type { Hold } from '../worker/hold.ts';
import { type AttemptResult, runAttempt } from './attempt.ts';
import { isUntaken } from './attempt-outcome.ts';
import { endTurn, endUnsent, endUntaken, endWithout, unsettle } from './end-turn.ts';
import { TurnSignal } from './turn-signal.ts';

/**
 * Runs one begun turn to its one end:
 *
 *   restore ─▶ the session has everything, and a receipt says how; or the turn fails and nothing was sent
 *   send    ─▶ the fact is stored, then the prompt leaves
 *   events  ─▶ stored as they come
 *   end     ─▶ the record, the usage, the session and its watermark, in one commit
 *
 * An attempt that failed without having done anything is followed by another within the same turn (R6). `start`: restoring
 * and the fact of sending are done, in the commit that accepted the turn.
 */
export async function runTurn(
  hold: Hold,
  turn: Turn,
  start: HeadStart | null,
  changes: Changes,
  shutdown: AbortSignal,
): Promise<void> {
  const signal = new TurnSignal(hold.parts.store, changes, hold.lease, turn);
  const onShutdown = () => signal.stop('shutdown');
  shutdown.addEventListener('abort', onShutdown, { once: true });
  if (shutdown.aborted) onShutdown();
  try {
    await attempts(hold, turn, start, signal);
  } finally {
    shutdown.removeEventListener('abort', onShutdown);
    signal.close();
  }
}

async function attempts(hold: Hold, turn: Turn, start: HeadStart | null, signal: TurnSignal): Promise<void> {
  const { agents, settings } = hold.parts;
  const agent = agents.get(turn.agent)?.agent;
  if (agent === undefined) return endUnsent(hold, turn, unknownAgent(turn.agent), null);
  const traits = start?.traits ?? (await agent.traits().catch((error: unknown) => unavailable(error)));
  if ('code' in traits) return endUnsent(hold, turn, traits, null);

  const restoring = effectiveRestore(settings.restore, hold.conversation.restore, turn.options.restore);
  const explicit = turn.options.session ?? null;
  const lock = new LockWait(settings.lock);
  const tried: Tried[] = [];
  let shrink = 0;
  /** Of the first attempt only. */
  let ahead = start;
  let rewind = start === null ? await rewindAtFirst(hold, turn, traits, restoring) : null;
  /** The attempt before this one: it was sent, so the turn is part of the history whatever comes now. */
  let last: AttemptResult | null = null;
  const giveUp = (failure: Failure, receipt: Receipt | null) =>
    last === null
      ? endUnsent(hold, turn, failure, receipt)
      : endWithout(hold, turn, { ...last, failure, receipt: receipt ?? last.receipt });

  for (let attempt = turn.attempt, tries = 1; ; attempt += 1, tries += 1) {
    // Nothing was sent: it stays queued for the next worker.
    if (signal.reason === 'shutdown' && last === null && ahead === null) return;
    if (signal.reason && ahead === null) return giveUp(stopped(signal), null);
    const request: Omit<RestoreRequest, 'signal'> = {
      hold,
      agent,
      traits,
      settings: restoring,
      explicit,
      turn,
      attempt,
      rewind,
      shrink,
      tried,
      lock,
    };
    const restored =
      ahead?.restored ??
      (await restore({ ...request, signal: signal.signal }).catch((error: unknown) => interrupted(error, signal)));
    if ('code' in restored && signal.reason) continue;
    if ('code' in restored) return giveUp(restored, null);
    if (!restored.ok && signal.reason === 'shutdown' && last === null)
      return hold.lease.write({ write: 'receipt', receipt: restored.receipt, turn: turn.id, session: null });
    if (!restored.ok) return giveUp(signal.reason ? stopped(signal) : restored.failure, restored.receipt);
    if (signal.reason && ahead === null) {
      await putBack(hold, agent, restored.open.session);
      continue;
    }
    const spent: Usage = last?.usage ?? NO_USAGE;
    const prompt = { hold, agent, traits, signal, required: restoring.policy === 'required' };
    const sent = ahead?.sent ?? null;
    ahead = null;
    const result = await runAttempt({ ...prompt, turn: { ...turn, attempt }, restored, spent, sent }).catch(
      (error: unknown) => notOurs(error),
    );
    if ('code' in result) return giveUp(result, restored.receipt);
    const discarded = await mayTryAgain(result, { tries, shrink, lock, signal, hold, agent, traits, tried });
    if (discarded === 'no') {
      // Stopped while it waited for its next attempt: that is how it ended, and not by the failure before.
      const stoppedNow = result.failure !== null && result.harmless && signal.reason !== null;
      const ended = stoppedNow ? { ...result, failure: stopped(signal) } : result;
      if (isUntaken(result.outcome) && last === null && turn.attempt === 1) {
        return endUntaken(hold, agent, traits, turn, ended, wasAsItShouldBe(hold, restored));
      }
      return endTurn(hold, agent, traits, turn, ended, passing(restored, turn));
    }
    const failure = result.failure as Failure;
    if (failure.code === 'too_long') shrink += 1;
    const holdsPrompt = discarded === 'keep' && (await unsettle(hold, agent, traits, result));
    rewind = holdsPrompt && traits.rewind ? rewindOf(result.ref, result.sent) : null;
    await hold.lease.write({ write: 'retry', turn: turn.id, failure });
    last = discarded === 'keep' ? result : { ...result, ref: null };
  }
}

/** Whether the session was in the lineage with all of the history before this turn, and nothing was done or told to it for the turn. */
function wasAsItShouldBe({ conversation }: Hold, { open, receipt }: Restored & { ok: true }): boolean {
  return open.ref !== null && open.watermark === conversation.head && receipt.delivered === 0 && !receipt.unsettled;
}

/** A process that the caller insists on cannot go back: it has the failed prompt for as long as it lives. */
async function rewindAtFirst(hold: Hold, turn: Turn, traits: AgentTraits, { rung }: RestoreSettings) {
  const earlier = await rewindOfEarlier(hold, turn, traits);
  return earlier ?? (rung === 'live' ? null : rewindOfFailed(hold, turn.agent, traits));
}

/**
 * Why the session must not be kept; null: it is. One that lacks history because of what this one turn asked for, or because
 * nothing else worked, must not pass for one that has it.
 */
function passing({ receipt, leftOut }: Restored & { ok: true }, { options: { restore } }: Turn): string | null {
  if (receipt.rung === 'fresh') return 'it was begun without the history';
  const asked = restore?.budgetTokens !== undefined || restore?.lastTurns !== undefined;
  return asked && leftOut > 0 ? `${leftOut} turns were left out for this turn alone` : null;
}

/** Whatever the reason for trying again: an agent that fails every time must not be tried for ever. */
const MOST_TRIES = 8;

interface Chance {
  readonly tries: number;
  readonly shrink: number;
  readonly lock: LockWait;
  readonly signal: TurnSignal;
  readonly hold: Hold;
  readonly agent: Agent;
  readonly traits: AgentTraits;
  readonly tried: Tried[];
}

/**
 * Whether to try again within the turn, and whether the session is kept for it. Only after a failure that we saw to its
 * end, in which no tool had begun: anything else could happen twice (R6).
 */
async function mayTryAgain(result: AttemptResult, chance: Chance): Promise<'no' | 'keep' | 'discard'> {
  const { hold, agent, signal } = chance;
  const { failure } = result;
  if (failure === null || !result.harmless || signal.reason) return 'no';
  // Waits for a lock have a bound of their own.
  if (chance.tries >= MOST_TRIES && failure.code !== 'session_locked') return 'no';
  const { settings } = hold.parts;
  const note = (reason: string) =>
    chance.tried.push({ rung: result.receipt.rung, sessionId: result.sessionId, failure: reason });
  switch (failure.code) {
    case 'session_locked':
      return (await chance.lock.wait(signal.signal)) ? 'keep' : 'no';
    case 'too_long':
      if (result.receipt.delivered === 0 || chance.shrink > 0) return 'no';
      note('refused as too long');
      await discard(hold, agent, result, 'closed', 'it refused the history as too long');
      return 'discard';
    case 'context_refuted':
      note(failure.message);
      await discard(hold, agent, result, 'lost', failure.message);
      return 'discard';
    default:
      if (!result.again || chance.tries >= settings.attempts) return 'no';
      await delay(settings.retryMs * 2 ** (chance.tries - 1), undefined, { signal: signal.signal }).catch(() => {});
      if (signal.reason !== null) return 'no';
      if (!chance.traits.rewind || result.sent.position !== null) return 'keep';
      // Before its first prompt there is nothing to go back to.
      await discard(hold, agent, result, 'closed', 'the only prompt that it was sent has failed');
      return 'discard';
  }
}

/** What was opened and is not needed after all. A living session stays for the next turn. */
async function putBack(hold: Hold, agent: Agent, session: AgentSession): Promise<void> {
  if (hold.live.get(agent.name)?.session !== session) await session.close();
}

/** The agent's new session has an id that belongs to another conversation; nothing was sent. */
function notOurs(error: unknown): Failure {
  if (!(error instanceof ThroughlineError && error.code === 'conflict')) throw error;
  return {
    code: 'refused',
    message: error.message,
    hint: 'Nothing was sent. A native session belongs to one conversation.',
  };
}

/** Takes a session out of the running, so that the next attempt plans without it. */
async function discard(
  hold: Hold,
  agent: Agent,
  result: AttemptResult,
  state: 'lost' | 'closed',
  reason: string,
): Promise<void> {
  hold.live.delete(agent.name);
  await result.session.kill();
  if (result.ref === null) return;
  await hold.lease.write({ write: 'change-session', ref: result.ref, change: { state, process: null }, reason });
}

function unknownAgent(name: string): Failure {
  return {
    code: 'agent_unavailable',
    message: `No agent is called "${name}" here.`,
    hint: 'See "throughline agents".',
  };
}

function unavailable(error: unknown): Failure {
  if (error instanceof ThroughlineError) return failureOf(error);
  throw error;
}

/** A restore that was stopped by a signal, or whose agent could not be started. Anything else is a bug, and thrown. */
function interrupted(error: unknown, signal: TurnSignal): Failure {
  if (signal.reason) return stopped(signal);
  if (error instanceof ThroughlineError && error.code !== 'lease_lost') return failureOf(error);
  throw error;
}

function stopped(signal: TurnSignal): Failure {
  if (signal.reason === 'cancelled') return { code: 'cancelled', message: 'Cancelled.' };
  return { code: 'interrupted', message: 'This program was ended before the turn could be tried again.' };
}
