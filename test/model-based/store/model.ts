import type { ErrorCode } from '../../../src/core/errors.ts';
import type { EventKind } from '../../../src/core/event.ts';
import { type SessionState, USABLE_SESSION_STATES } from '../../../src/core/restore/session.ts';
import { hasEnded, type TurnEnd, type TurnState } from '../../../src/core/turn/turn.ts';

/*
 * What a store does, as briefly as possible, written from the rules and not from the code. The store is compared with it after every step.
 * Everything is plain data, so that a commit can be tried on a copy and discarded (all or nothing).
 */
export interface Turn {
  readonly id: string;
  readonly n: number;
  readonly agent: string;
  state: TurnState;
  attempt: number;
  sent: boolean;
  wasSent: boolean;
  cancelRequested: boolean;
  sessionId: string | null;
}

export interface Session {
  readonly ref: string;
  readonly id: string;
  readonly agent: string;
  state: SessionState;
  watermark: number;
  /** The number of the event at which it was last used. Lineages are sorted by it. */
  used: number;
}

export interface Permission {
  readonly id: string;
  readonly turn: string;
  state: 'open' | 'answered' | 'denied' | 'withdrawn';
}

export interface Conversation {
  readonly id: string;
  titled: boolean;
  nextN: number;
  turns: Turn[];
  /** The numbers of the turns that were sent and have ended; the head is the last of them. */
  history: number[];
  sessions: Session[];
  permissions: Permission[];
  receipts: string[];
  /** Every event, as [kind, turn]; its place in the list is its number. */
  events: [EventKind, string | null][];
  epoch: number;
  holder: string | null;
  expires: number;
  /** By epoch and counter: what the commit returned. */
  answers: Record<string, number>;
}

/** The store must refuse with this code, and change nothing. */
export class Refused extends Error {
  readonly code: ErrorCode;

  constructor(code: ErrorCode) {
    super(code);
    this.code = code;
  }
}

export function newConversation(id: string, first: EventKind): Conversation {
  const empty = { turns: [], history: [], sessions: [], permissions: [], receipts: [], answers: {} };
  return { id, titled: false, nextN: 1, events: [[first, null]], epoch: 0, holder: null, expires: 0, ...empty };
}

export const head = (conversation: Conversation) => conversation.history.at(-1) ?? 0;
export const open = (conversation: Conversation) => conversation.turns.filter((turn) => !hasEnded(turn.state));
export const isUsable = (session: Session) => USABLE_SESSION_STATES.includes(session.state);
export const byUse = (conversation: Conversation) => conversation.sessions.toSorted((a, b) => b.used - a.used);

function happened(conversation: Conversation, kind: EventKind, turn: string | null = null): void {
  conversation.events.push([kind, turn]);
}

// ── without a lease ──────────────────────────────────────────────────────────────────────────────────────────────────────

export function submit(conversation: Conversation, id: string, agent: string): Turn {
  if (!conversation.titled) happened(conversation, 'conversation.titled');
  conversation.titled = true;
  happened(conversation, 'turn.queued', id);
  const turn: Turn = {
    id,
    n: conversation.nextN,
    agent,
    state: 'queued',
    attempt: 0,
    sent: false,
    wasSent: false,
    cancelRequested: false,
    sessionId: null,
  };
  conversation.nextN += 1;
  conversation.turns.push(turn);
  return turn;
}

export function cancel(conversation: Conversation, turn: Turn): void {
  if (hasEnded(turn.state)) return;
  if (turn.state !== 'queued' && turn.cancelRequested) return;
  turn.cancelRequested = true;
  happened(conversation, 'turn.cancel_requested', turn.id);
  if (turn.state !== 'queued') return;
  turn.state = 'cancelled';
  happened(conversation, 'turn.ended', turn.id);
}

export function answer(conversation: Conversation, permission: Permission, known: boolean): void {
  if (permission.state !== 'open') throw new Refused('conflict');
  if (!known) throw new Refused('invalid');
  if (conversation.holder === null) throw new Refused('conflict');
  permission.state = 'answered';
  continueTurn(conversation, permission.turn);
  happened(conversation, 'permission.answered', permission.turn);
}

// ── the lease ────────────────────────────────────────────────────────────────────────────────────────────────────────────

/** Whether a worker with these agents may claim it now. */
export function claimable(conversation: Conversation, agents: readonly string[], named: boolean, now: number): boolean {
  if (conversation.holder !== null && conversation.expires > now) return false;
  const [oldest] = open(conversation);
  return oldest === undefined ? named : agents.includes(oldest.agent);
}

export function claim(
  conversation: Conversation,
  worker: string,
  expires: number,
): { begun: Turn | null; unfinished: Turn | null } {
  conversation.epoch += 1;
  conversation.holder = worker;
  conversation.expires = expires;
  const [oldest] = open(conversation);
  if (oldest !== undefined && oldest.state !== 'queued') withdrawAll(conversation, oldest);
  endLiving(conversation);
  if (oldest === undefined) return { begun: null, unfinished: null };
  if (oldest.state !== 'queued') {
    oldest.state = 'running';
    if (oldest.sent) return { begun: null, unfinished: oldest };
    happened(conversation, 'turn.requeued', oldest.id);
    oldest.state = 'queued';
  }
  return { begun: started(conversation, oldest), unfinished: null };
}

export function release(conversation: Conversation): void {
  endLiving(conversation);
  conversation.holder = null;
}

/** Its holder has ended, and with it the processes of its sessions. */
export function endLiving(conversation: Conversation): void {
  const unsure = open(conversation).flatMap(({ sent, sessionId }) => (sent ? [sessionId] : []));
  for (const session of conversation.sessions) {
    if (session.state !== 'live' || unsure.includes(session.id)) continue;
    session.state = 'dormant';
    happened(conversation, 'session.changed');
  }
}

function started(conversation: Conversation, turn: Turn): Turn {
  turn.state = 'running';
  turn.attempt += 1;
  happened(conversation, 'turn.started', turn.id);
  return turn;
}

export function held(conversation: Conversation, epoch: number): boolean {
  return conversation.epoch === epoch && conversation.holder !== null;
}

export function nextTurn(conversation: Conversation, epoch: number, agents: readonly string[]): Turn | null {
  if (!held(conversation, epoch)) throw new Refused('lease_lost');
  const [oldest] = open(conversation);
  if (oldest === undefined || !agents.includes(oldest.agent)) return null;
  if (oldest.state !== 'queued' && oldest.sent) throw new Refused('conflict');
  return oldest;
}

// ── under the fence ──────────────────────────────────────────────────────────────────────────────────────────────────────

export type Write =
  | { write: 'begin'; turn: string }
  | { write: 'update'; turn: string }
  | { write: 'open'; session: Omit<Session, 'used'>; turn: string | null }
  | { write: 'change'; ref: string; state: SessionState; watermark: number }
  | { write: 'receipt'; turn: string; attempt: number }
  | { write: 'send'; turn: string; ref: string | null }
  | { write: 'retry'; turn: string }
  | { write: 'ask'; turn: string; permission: string }
  | { write: 'deny'; permission: string }
  | { write: 'end'; turn: string; outcome: TurnEnd; record: number | null; ref: string | null; unsent?: boolean };

/** `others`: every other conversation, because a native session belongs to only one. */
export function commit(
  conversation: Conversation,
  others: readonly Conversation[],
  epoch: number,
  counter: number,
  writes: readonly Write[],
): { after: Conversation; seq: number } {
  if (!held(conversation, epoch)) throw new Refused('lease_lost');
  const known = conversation.answers[`${epoch}.${counter}`];
  if (known !== undefined) return { after: conversation, seq: known };
  const after = structuredClone(conversation);
  for (const write of writes) apply(after, others, write);
  if (after.sessions.some((session) => session.watermark > head(after))) throw new Refused('invalid');
  const seq = after.events.length;
  // A commit without events is not remembered. It may be repeated, because then it again changes nothing.
  if (seq > conversation.events.length) after.answers[`${epoch}.${counter}`] = seq;
  return { after, seq };
}

function apply(conversation: Conversation, others: readonly Conversation[], write: Write): void {
  switch (write.write) {
    case 'begin': {
      const [oldest] = open(conversation);
      if (oldest?.id !== write.turn || oldest.state !== 'queued') throw new Refused('conflict');
      started(conversation, oldest);
      return;
    }
    case 'update':
      happened(conversation, 'turn.update', write.turn);
      return;
    case 'open':
      openSession(conversation, others, write.session, write.turn);
      return;
    case 'change': {
      const session = sessionOf(conversation, write.ref);
      if (!isUsable(session) && USABLE_SESSION_STATES.includes(write.state)) refuseTaken(conversation, others, session);
      Object.assign(session, { state: write.state, watermark: write.watermark });
      happened(conversation, 'session.changed');
      return;
    }
    case 'receipt': {
      const key = `${write.turn} ${write.attempt}`;
      if (!conversation.receipts.includes(key)) conversation.receipts.push(key);
      happened(conversation, 'restore.receipt', write.turn);
      return;
    }
    case 'send': {
      const turn = begunTurn(conversation, write.turn);
      if (turn.sent) throw new Refused('conflict');
      Object.assign(turn, { sent: true, wasSent: true });
      if (write.ref !== null) use(conversation, write.ref, turn);
      happened(conversation, 'turn.sent', turn.id);
      return;
    }
    case 'retry': {
      const turn = begunTurn(conversation, write.turn);
      withdrawAll(conversation, turn);
      Object.assign(turn, { sent: false, attempt: turn.attempt + 1, state: 'running' });
      happened(conversation, 'turn.retrying', turn.id);
      return;
    }
    case 'ask': {
      const turn = begunTurn(conversation, write.turn);
      turn.state = 'waiting';
      conversation.permissions.push({ id: write.permission, turn: turn.id, state: 'open' });
      happened(conversation, 'permission.asked', turn.id);
      return;
    }
    case 'deny': {
      const permission = conversation.permissions.find((one) => one.id === write.permission);
      if (permission?.state !== 'open') return;
      permission.state = 'denied';
      continueTurn(conversation, permission.turn);
      happened(conversation, 'permission.denied', permission.turn);
      return;
    }
    case 'end':
      end(conversation, write);
      return;
  }
}

function end(conversation: Conversation, write: Extract<Write, { write: 'end' }>): void {
  const { turn: id, outcome, record, ref, unsent = false } = write;
  const turn = begunTurn(conversation, id);
  if (unsent && (record !== null || turn.attempt > 1)) throw new Refused('invalid');
  if (unsent) Object.assign(turn, { sent: false, wasSent: false });
  if (record === null && turn.sent) throw new Refused('invalid');
  if (record !== null && (!turn.wasSent || record !== turn.n)) throw new Refused('invalid');
  withdrawAll(conversation, turn);
  if (ref !== null) use(conversation, ref, turn);
  turn.state = outcome;
  if (record !== null) conversation.history.push(record);
  happened(conversation, 'turn.ended', turn.id);
}

function openSession(
  conversation: Conversation,
  others: readonly Conversation[],
  session: Omit<Session, 'used'>,
  turn: string | null,
): void {
  const opened = { ...session, used: conversation.events.length + 1 };
  if (isUsable(opened)) refuseTaken(conversation, others, session);
  conversation.sessions.push(opened);
  const given = conversation.turns.find((one) => one.id === turn);
  if (given) given.sessionId = session.id;
  happened(conversation, 'session.opened', turn);
}

/** A native session belongs to one conversation (R1), and is listed in it once. */
function refuseTaken(
  conversation: Conversation,
  others: readonly Conversation[],
  { ref, id, agent }: Pick<Session, 'ref' | 'id' | 'agent'>,
): void {
  const all = [conversation, ...others].flatMap((one) => one.sessions);
  const taken = all.some((one) => one.ref !== ref && one.id === id && one.agent === agent && isUsable(one));
  if (taken) throw new Refused('conflict');
}

function begunTurn(conversation: Conversation, id: string): Turn {
  const turn = conversation.turns.find((one) => one.id === id);
  if (turn === undefined) throw new Refused('not_found');
  if (hasEnded(turn.state) || turn.state === 'queued') throw new Refused('conflict');
  return turn;
}

function sessionOf(conversation: Conversation, ref: string): Session {
  const session = conversation.sessions.find((one) => one.ref === ref);
  if (session === undefined) throw new Refused('not_found');
  return session;
}

function use(conversation: Conversation, ref: string, turn: Turn): void {
  const session = sessionOf(conversation, ref);
  if (session.agent !== turn.agent) throw new Refused('conflict');
  session.used = conversation.events.length + 1;
  turn.sessionId = session.id;
}

function withdrawAll(conversation: Conversation, turn: Turn): void {
  for (const permission of conversation.permissions) {
    if (permission.turn !== turn.id || permission.state !== 'open') continue;
    permission.state = 'withdrawn';
    happened(conversation, 'permission.withdrawn', turn.id);
  }
}

function continueTurn(conversation: Conversation, id: string): void {
  const turn = conversation.turns.find((one) => one.id === id);
  const asked = conversation.permissions.some((one) => one.turn === id && one.state === 'open');
  if (turn?.state === 'waiting' && !asked) turn.state = 'running';
}
