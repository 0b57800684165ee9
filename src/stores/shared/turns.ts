// What every store decides about turns. A store reads the facts, and writes what is decided here.

import { errorOf, noAgentGiven, noSuchAgent, ThroughlineError } from '../../core/errors.ts';
import { given } from '../../core/input/arguments.ts';
import { dayLimits, effectivePerDay, judgeSpending, type PerDay, type Spending } from '../../core/limits/spending.ts';
import type { SessionHistory } from '../../core/restore/adopted.ts';
import { keptFor } from '../../core/turn/choices.ts';
import { titleOf } from '../../core/turn/content.ts';
import { replyText, type TurnRecord } from '../../core/turn/record.ts';
import { hasEnded, type Turn } from '../../core/turn/turn.ts';
import { NO_USAGE } from '../../core/turn/usage.ts';
import type { AdoptedSession, AskedAgent, NewTurn } from '../../ports/store/turns.ts';
import type { EndOfTurn, Write } from '../../ports/store/writes.ts';
import { canonicalHash } from './content.ts';
import type { LeaseRow } from './ledger.ts';
import { limitPerDayOf, type TurnRow } from './rows.ts';
import type { EndedTurn } from './totals.ts';

// ── accepting ──

/** A turn as it is stored. `replaces`: the id of the queued turn whose place it takes. */
export type AddedTurn = Pick<NewTurn, 'id' | 'requestId' | 'prompt' | 'options' | 'permissions' | 'retryOf' | 'by'> & {
  readonly replaces?: string;
};

/** Tells a repetition from another request with the same id; null: the request has no id. */
export function requestHash({ requestId, conversation, agent, prompt, options, retryOf }: NewTurn): Uint8Array | null {
  return requestId === null ? null : canonicalHash([conversation, agent, prompt, options, retryOf]);
}

/** The same request again gives the same turn (R3). Throws `conflict` for another one with its id. */
export function checkRepeated(requestId: string, stored: Uint8Array | null, asked: Uint8Array): void {
  if (stored !== null && Buffer.compare(stored, asked) === 0) return;
  throw new ThroughlineError('conflict', `The request id "${requestId}" was already used for another request.`, {
    hint: 'Use a new request id for a new request.',
  });
}

/** The limits of spending that hold for a new turn; null: none does. */
export function perDayOf({ perDay }: NewTurn, { limits }: LeaseRow): PerDay | null {
  return perDay === undefined ? null : effectivePerDay(perDay, limitPerDayOf(limits));
}

/** Throws `over_budget`. */
export function checkSpent(perDay: PerDay, spent: Spending, agent: string, now: number): void {
  const failure = judgeSpending(dayLimits(perDay, spent), agent, now);
  if (failure !== null) throw errorOf(failure);
}

export function checkDriver(found: string, wanted: string, key: string | null): void {
  if (found !== wanted) throw keyTaken(key);
}

export function keyTaken(key: string | null): ThroughlineError {
  return new ThroughlineError('conflict', `A conversation "${key}" was created meanwhile.`, {
    hint: 'Use another key.',
  });
}

/**
 * The agent of a new turn: the one that the request names, else `last`, else the default. `last`: the agent of the last turn; before the first turn,
 * the conversation's own.
 */
export function chosenAgent(request: AskedAgent, last: string | null): string {
  const agent = request.agent ?? last ?? request.defaultAgent;
  if (agent === null) throw noAgentGiven(request.agents);
  if (request.agents?.includes(agent) === false) throw noSuchAgent(agent, request.agents);
  return agent;
}

/** A native session belongs to one conversation (R1). The error does not say to which. */
export function sessionInUse(id: string): ThroughlineError {
  return new ThroughlineError('refused', `The session "${id}" is in use elsewhere and cannot be used here.`);
}

/** An id that the caller chose opens a session once, in one conversation (R1). */
export function sessionIdUsed(id: string): ThroughlineError {
  return new ThroughlineError('refused', `The session id "${id}" was used before, or an open turn has chosen it.`, {
    hint: 'Choose another one (for a task: add the task again). To continue in an existing session, name it as "session".',
  });
}

export function noTurnToRetry(): ThroughlineError {
  return new ThroughlineError('not_found', 'The turn to retry is not in this conversation.');
}

export function turnIdTaken(cause: unknown): ThroughlineError {
  return new ThroughlineError('conflict', 'A turn with this id exists already.', { cause });
}

/**
 * The options of a turn as JSON. `choices`: what the conversation has chosen, as JSON. A retry has the choices of the turn that it
 * repeats, and so has what replaces a turn.
 */
export function optionsJson(request: AddedTurn, agent: string, choices: string): string {
  const kept = request.replaces === undefined && choices !== '{}' ? keptFor(JSON.parse(choices), agent) : undefined;
  return JSON.stringify({ ...given({ permissions: request.permissions, kept }), ...request.options });
}

/** A turn as it is when it was accepted. `options` as JSON, with the choices of the conversation. */
export function acceptedTurn(
  { id: conversation, next_n: n }: Pick<LeaseRow, 'id' | 'next_n'>,
  { id, requestId, prompt, retryOf, replaces }: AddedTurn,
  { agent, options, createdAt }: { readonly agent: string; readonly options: string; readonly createdAt: number },
): Turn {
  const asked = { id, conversation, n, requestId, agent, prompt, options: JSON.parse(options), retryOf };
  return { ...NEW_TURN, ...asked, replaces: replaces ?? null, createdAt };
}

const NEW_TURN = {
  state: 'queued',
  ...{ attempt: 0, sessionId: null, replacedBy: null, imported: false, sent: null, failure: null },
  ...{ cancelRequested: false, usage: NO_USAGE, startedAt: null, endedAt: null },
} as const;

export function queuedPayload(added: AddedTurn, n: number, agent: string) {
  const { requestId, retryOf, replaces, by } = added;
  return { n, agent, requestId, retryOf, ...given({ replaces, by }), preview: titleOf(added.prompt) };
}

// ── copying and adopting ──

/** Throws when the session cannot be taken in. `isElsewhere`: another conversation has it. */
export function checkAdoption(row: LeaseRow, agent: string, adopted: AdoptedSession, isElsewhere: boolean): void {
  const { id } = adopted;
  if (isElsewhere) throw sessionInUse(id);
  // The adopted turns have ended already, and would come after one that is still open.
  if (row.pending > 0) {
    throw new ThroughlineError(
      'conflict',
      `The session "${id}" cannot be adopted while the conversation has an open turn.`,
      {
        hint: 'Its earlier turns become part of the history. Wait for the end of the open turn, or cancel it.',
      },
    );
  }
  if (agent === adopted.agent) return;
  throw new ThroughlineError('conflict', `The conversation has continued with the agent "${agent}".`, {
    hint: 'Name the agent together with the session.',
  });
}

/** The records of its own turns, numbered from `first`. */
export function adoptedRecords(history: SessionHistory, first: number, agent: string, sessionId: string): TurnRecord[] {
  return history.turns.map((turn, index) => {
    const unknown = index === 0 && history.unknownBefore ? ({ unknownBefore: true } as const) : {};
    const known = { version: 1, n: first + index, agent, sessionId, usage: NO_USAGE } as const;
    return { ...known, ...turn, ...unknown };
  });
}

/** Throws `invalid` unless a fork can begin after turn `n`. */
export function checkForkPoint(n: number, head: number): void {
  if (Number.isSafeInteger(n) && n >= 0 && n <= head) return;
  throw new ThroughlineError('invalid', `There is no turn ${n} in the history; its last turn is ${head}.`);
}

/** Throws `invalid` unless the numbers of imported turns increase. */
export function checkOrder(records: readonly TurnRecord[]): void {
  const misplaced = records.find((record, index) => record.n <= (records[index - 1]?.n ?? 0));
  if (misplaced === undefined) return;
  throw new ThroughlineError('invalid', `Turn ${misplaced.n} is out of order: turn numbers must increase.`);
}

/** A turn as it counts in the totals. `session` null: it ran in a session that this conversation never uses. */
export function endedTurn(record: TurnRecord, session: string | null): EndedTurn {
  return { n: record.n, at: record.endedAt, outcome: record.outcome, session, usage: record.usage };
}

// ── under the lease ──

/** Throws `conflict` while a turn that was sent has not ended: no other begins. */
export function checkMayBegin({ n, state, sent }: Pick<TurnRow, 'n' | 'state' | 'sent'>): void {
  if (sent !== null && state !== 'queued') throw new ThroughlineError('conflict', `Turn ${n} has not ended.`);
}

/** The oldest open turn, if it is the one that shall begin. Throws `conflict`: it was cancelled or replaced, or has begun. */
export function turnToBegin<R extends Pick<TurnRow, 'id' | 'n' | 'state'>>(oldest: R | undefined, id: string): R {
  if (oldest?.id === id && oldest.state === 'queued') return oldest;
  const next = oldest === undefined ? 'No turn is open' : `Turn ${oldest.n} comes next, and is ${oldest.state}`;
  throw new ThroughlineError('conflict', `The turn cannot begin. ${next}.`);
}

/** The turn that this lease runs. Throws `conflict` when it has ended, or was never begun. */
export function begunTurn<R extends Pick<TurnRow, 'n' | 'state'>>(turn: R | undefined): R {
  if (turn === undefined) throw noTurn();
  if (hasEnded(turn.state)) throw new ThroughlineError('conflict', `Turn ${turn.n} has already ended.`);
  if (turn.state === 'queued') throw new ThroughlineError('conflict', `Turn ${turn.n} has not begun.`);
  return turn;
}

export function noTurn(): ThroughlineError {
  return new ThroughlineError('not_found', 'There is no such turn in this conversation.');
}

export function checkNotSent({ n, sent }: Pick<TurnRow, 'n' | 'sent'>): void {
  if (sent !== null) throw new ThroughlineError('conflict', `Turn ${n} was already sent.`);
}

export function checkReceipt(turn: { readonly n: number } | null, other: number | null): void {
  if (turn === null || turn.n === other) return;
  throw new ThroughlineError('conflict', `The receipt is of turn ${other}, not of turn ${turn.n}.`);
}

/** The watermark of a session cannot be beyond the history (R9). The last write for a session counts. */
export function checkWatermarks({ head }: LeaseRow, writes: readonly Write[]): void {
  const watermarks = new Map<string, number>();
  for (const write of writes) {
    if (write.write === 'open-session') watermarks.set(write.session.ref, write.session.watermark);
    if (write.write === 'change-session' && write.change.watermark !== undefined)
      watermarks.set(write.ref, write.change.watermark);
  }
  for (const watermark of watermarks.values()) {
    if (watermark > head)
      throw new ThroughlineError('invalid', `The watermark of a session cannot be beyond the head (${head}).`);
  }
}

// ── ending ──

/** The history is the turns that were sent and have ended: a record for each of them, and for no other. */
export function checkRecord(turn: TurnRow, { record, unsent }: EndOfTurn): void {
  if (unsent && record !== null) throw fault(turn, 'has a record, so it was sent');
  if (unsent && turn.attempt > 1) throw fault(turn, 'was tried before, and may have been sent then');
  if (record === null && turn.sent !== null && !unsent) throw fault(turn, 'was sent, so its end needs a record');
  if (record !== null && turn.was_sent === 0) throw fault(turn, 'was never sent, so it has no record');
  if (record !== null && record.n !== turn.n) throw fault(turn, `cannot have the record of turn ${record.n}`);
}

function fault(turn: TurnRow, what: string): ThroughlineError {
  return new ThroughlineError('invalid', `Turn ${turn.n} ${what}.`);
}

/** The prompt of a turn that was accepted without one: a tracker may give it at the end. */
export const NO_PROMPT = '[]';

export function endedPayload(n: number, { outcome, failure, usage }: EndOfTurn, record: TurnRecord | null) {
  const reply = record === null ? '' : cut(replyText(record.parts));
  return { n, outcome, failure, reply, usage, ...(record?.recovered && { recovered: record.recovered }) };
}

const LONGEST_REPLY = 4096;

/** The event has only the beginning of the reply; the record has all of it. */
function cut(reply: string): string {
  if (reply.length <= LONGEST_REPLY) return reply;
  return `${reply.slice(0, LONGEST_REPLY).toWellFormed()}… [${reply.length - LONGEST_REPLY} more in the record]`;
}

/** Why a turn ended that was never begun. */
export function cancelledBy(by: string, replacedBy: string | null) {
  const how = replacedBy === null ? 'Cancelled' : 'Replaced by another turn';
  return { code: 'cancelled', message: `${how} by ${by.replace(/ by (.*)$/s, ' ($1)')} before it began.` } as const;
}

/** Throws unless there is an answer to deliver. */
export function checkDelivered(row: TurnRow): void {
  if (row.delivered === null) {
    throw new ThroughlineError(
      'invalid',
      `Turn ${row.n} was sent without "deliverTo" (--deliver-to): it is not pending.`,
      {
        hint: 'Give it when you send a turn.',
      },
    );
  }
  if (!hasEnded(row.state)) {
    throw new ThroughlineError(
      'conflict',
      `Turn ${row.n} has not ended: it is ${row.state}. There is no answer to deliver yet.`,
      {
        hint: 'Wait for its end, or cancel it.',
      },
    );
  }
}
