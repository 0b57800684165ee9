import type { Failure } from '../errors.ts';
import { mergeParts, type RecordPart } from './record.ts';
import { addUsage, type Usage } from './usage.ts';

/*
 * What happens to a turn after one attempt at it. A turn may be attempted again only after a failure that was seen to its end, in which
 * no tool had begun: otherwise a side effect could happen twice (R6).
 */

/** Why a turn has to stop: somebody cancelled it, this program is about to end, or a limit is reached (the failure of the turn). */
export type TurnStop = 'cancelled' | 'shutdown' | Failure;

export interface AttemptFacts {
  /** Null: nothing asks the turn to stop. */
  readonly stop: TurnStop | null;
  /** Null: it completed; or it was stopped before a prompt was sent. */
  readonly failure: Failure | null;
  /** The prompt that was sent in this attempt; null: none was. */
  readonly prompt: PromptFacts | null;
  /** This worker sent an earlier attempt: the turn is part of the history, whatever happens now. */
  readonly sentBefore: boolean;
  /** No worker has attempted this turn before. */
  readonly isFirst: boolean;
  /** Attempts of this worker, this one included. */
  readonly tries: number;
  /** How many attempts the settings allow after a transient failure, and the first pause between two. */
  readonly mostAttempts: number;
  readonly retryMs: number;
  /** How long to wait for a locked session next; null: it was waited for long enough. */
  readonly lockWaitMs: number | null;
  /** The history was already shortened once because it was refused as too long. */
  readonly shrunk: boolean;
  /** The caller chose the id of the turn's new session, which can be opened only once. */
  readonly chosenId: boolean;
}

export interface PromptFacts {
  /** The agent's output was read to its end, and no tool had begun: sending again repeats no side effect. */
  readonly harmless: boolean;
  /** The agent says that the same prompt may work when it is sent again. */
  readonly again: boolean;
  /** The agent did not take the prompt: it is not part of the session. */
  readonly untaken: boolean;
  /** How many turns of the history were put before the prompt. */
  readonly delivered: number;
  /** How many images of earlier turns were put before the prompt. */
  readonly images: number;
  /** The session can be used for another attempt: the failed prompt can be removed from it, or may stay in it. */
  readonly reusable: boolean;
}

export type TurnVerdict =
  /** Nothing was sent: the turn stays queued for the next worker. */
  | { readonly next: 'leave' }
  | { readonly next: 'end'; readonly as: EndKind; readonly failure: Failure | null }
  | {
      readonly next: 'again';
      readonly waitMs: number;
      /** Why the session is not used for the next attempt, and the state it is left in; null: it is kept. */
      readonly aside: { readonly state: 'closed' | 'lost'; readonly reason: string } | null;
      /** What the receipt says of this attempt; null: nothing. */
      readonly tried: string | null;
      /** The next attempt delivers half of the history, and no images. */
      readonly shrink: boolean;
      readonly failure: Failure;
    };

/**
 * `unsent`: nothing was sent, so it is not part of the history. `untaken`: its prompt was sent, but the agent did not take it, which
 * counts as unsent. `earlier`: it ends with the result of the attempt before. `sent`: it ends with this attempt.
 */
export type EndKind = 'unsent' | 'untaken' | 'earlier' | 'sent';

/** The most attempts, whatever the reasons: an agent may fail every time. */
const MOST_TRIES = 8;

export function decideAfterAttempt(facts: AttemptFacts): TurnVerdict {
  const { stop, prompt, failure, sentBefore } = facts;
  if (prompt === null) return decideUnsent(facts);
  const again = decideAgain(facts, prompt);
  // The chosen session id can be opened only once, so no other session can take the next attempt.
  const lost = facts.chosenId && again?.next === 'again' && again.aside !== null;
  if (again !== null && !lost) return again;
  // A turn that is stopped while it waits for its next attempt ends as stopped, not with the failure before.
  const ended = stop !== null && failure !== null && prompt.harmless ? stopped(stop) : failure;
  const untaken = prompt.untaken && !sentBefore && facts.isFirst;
  return { next: 'end', as: untaken ? 'untaken' : 'sent', failure: ended };
}

function decideUnsent({ stop, failure, sentBefore }: AttemptFacts): TurnVerdict {
  if (stop === 'shutdown' && !sentBefore) return { next: 'leave' };
  const why = stop === null ? failure : stopped(stop);
  return { next: 'end', as: sentBefore ? 'earlier' : 'unsent', failure: why };
}

/** Null: the turn is not tried again. */
function decideAgain(facts: AttemptFacts, prompt: PromptFacts): TurnVerdict | null {
  const { stop, failure, tries, lockWaitMs } = facts;
  if (failure === null || !prompt.harmless || stop !== null) return null;
  const again = { next: 'again', waitMs: 0, aside: null, tried: null, shrink: false, failure } as const;
  if (failure.code === 'session_locked') return lockWaitMs === null ? null : { ...again, waitMs: lockWaitMs };
  if (tries >= MOST_TRIES) return null;
  switch (failure.code) {
    case 'too_long': {
      if (prompt.delivered === 0 || facts.shrunk) return null;
      const aside = { state: 'closed', reason: 'it refused the history as too long' } as const;
      return { ...again, aside, tried: 'refused as too long', shrink: true };
    }
    case 'context_refuted':
      return { ...again, aside: { state: 'lost', reason: failure.message }, tried: failure.message };
    default: {
      if (!prompt.again || tries >= facts.mostAttempts) return facts.shrunk ? null : withoutImages(prompt, again);
      const aside = { state: 'closed', reason: 'the only prompt that it was sent has failed' } as const;
      return { ...again, waitMs: facts.retryMs * 2 ** (tries - 1), aside: prompt.reusable ? null : aside };
    }
  }
}

/** A model that cannot read an image of an earlier turn would fail at every prompt from now on. */
function withoutImages({ images, untaken }: PromptFacts, again: TurnVerdict & { next: 'again' }): TurnVerdict | null {
  if (images === 0 || untaken || again.failure.code !== 'agent_failed') return null;
  const reason = 'it failed with images of earlier turns';
  return { ...again, aside: { state: 'closed', reason }, tried: 'failed with images of earlier turns', shrink: true };
}

export function stopped(stop: TurnStop): Failure {
  if (typeof stop === 'object') return stop;
  if (stop === 'cancelled') return { code: 'cancelled', message: 'Cancelled.' };
  return { code: 'interrupted', message: 'This program was ended before the turn could be tried again.' };
}

// ── a turn whose end nobody saw ────────────────────────────────────────────────────────────────────────────────────────

/** What is known of a turn that was sent: from the agent's output, and from its own storage. */
export interface SentFacts {
  /** Why the turn did not complete, as far as its output shows; null: it completed. */
  readonly failure: Failure | null;
  /** The program that ran the turn died, and with it the agent's output. */
  readonly crashed: boolean;
  readonly seen: readonly RecordPart[];
  readonly usage: Usage;
  /** The agent has reported what the prompt used, and that is part of `usage`. */
  readonly isUsageReported: boolean;
  /** What the storage has of the turn, if the output was not read to its end. */
  readonly found: readonly RecordPart[];
  /** The storage shows that the agent finished the turn. */
  readonly ended: boolean;
  /** What the turn has used, as far as the storage shows it. */
  readonly usageFound: Partial<Usage>;
}

export interface SentEnd {
  /** Null: it completed. */
  readonly failure: Failure | null;
  /** Nobody saw the end: it was read from the agent's storage. */
  readonly recovered: boolean;
  readonly parts: readonly RecordPart[];
  readonly usage: Usage;
}

/**
 * How a turn that was sent has ended. If nobody saw its end, because the agent or this program died, the agent's storage decides. A turn
 * that was stopped stays stopped, whatever the storage shows.
 */
export function endOfSent(facts: SentFacts): SentEnd {
  const { failure, crashed, seen, isUsageReported, found, ended, usageFound } = facts;
  if (failure === null) return { failure, recovered: false, parts: seen, usage: facts.usage };
  const usage = isUsageReported ? facts.usage : addUsage(facts.usage, usageFound);
  if (!ended || !(crashed || failure.code === 'agent_died'))
    return { failure, recovered: false, parts: mergeParts(seen, found), usage };
  return { failure: null, recovered: true, parts: found, usage };
}
