import { type ConversationState, type TitleSource, titleWins } from '../../core/conversation.ts';
import { ThroughlineError } from '../../core/errors.ts';
import type { Fence } from '../../ports/store/leases.ts';
import { hex, newSalt, nextChain, payloadDigest } from './chain.ts';

/** The hot row of a conversation, with what its turns need of the conversation itself. */
export interface LeaseRow {
  readonly conv: number;
  readonly owner: string;
  readonly id: string;
  readonly driver: string;
  readonly place: string;
  next_n: number;
  next_seq: number;
  chain: Uint8Array;
  head: number;
  history: number;
  epoch: number;
  pending: number;
  worker: number | null;
  ready_at: number | null;
  /** Of the conversation; shown in lists. */
  state: ConversationState;
  last_agent: string | null;
  title: string;
  title_source: TitleSource;
  put_away: number;
  pinned: number;
  /** JSON, like `limits`. */
  readonly choices: string;
  readonly limits: string;
  readonly sandbox: string;
}

/** Without a condition. */
export const LEASE = `
  SELECT l.conv, l.owner, l.driver, l.place, l.next_n, l.next_seq, l.chain, l.head, l.history, l.epoch, l.pending, l.worker, l.ready_at,
    c.id, c.state, c.last_agent, c.title, c.title_source, c.put_away, c.pinned, c.choices, c.limits, c.sandbox
  FROM leases l JOIN conversations c ON c.no = l.conv`;

/** The number of a write within its epoch. Its events are numbered by `part`. */
export interface Stamp {
  readonly epoch: number;
  readonly counter: number;
  part: number;
}

export interface TurnName {
  readonly no: number;
  readonly id: string;
}

/** Gives the next event its number, and the row the chain up to it. */
export function nextEvent(row: LeaseRow, now: number, kind: string, turn: TurnName | null, payload: unknown) {
  const seq = row.next_seq;
  const json = JSON.stringify(payload);
  const salt = newSalt();
  const link = { conversation: row.id, seq, kind, turn: turn?.id ?? null, at: now };
  row.chain = nextChain(row.chain, payloadDigest(salt, json), link);
  row.next_seq += 1;
  return { seq, json, salt };
}

export function hasOpenTurns(): ThroughlineError {
  return new ThroughlineError('conflict', 'The conversation has turns that have not ended.', {
    hint: 'Cancel them, and erase it when they have ended.',
  });
}

/** Throws `conflict` unless the chain ends with `head`. Undefined: it may end with any event. */
export function checkEndsWith(
  { next_seq, chain }: Pick<LeaseRow, 'next_seq' | 'chain'>,
  head: string | undefined,
): void {
  if (head === undefined || head === `${next_seq - 1}:${hex(chain)}`) return;
  throw new ThroughlineError('conflict', 'The conversation has changed since it was verified. Nothing was erased.', {
    hint: 'Verify and export it again, and erase it with the new head.',
  });
}

/** The row, of the conversation that the fence names. Throws `lease_lost`: only the epoch decides, not the time. */
export function underFence<R extends Pick<LeaseRow, 'owner' | 'epoch' | 'worker'>>(
  row: R | undefined,
  fence: Fence,
): R {
  // For its holder, an erased conversation, which has no owner, is a lost lease.
  if (row === undefined || (row.owner !== fence.owner && row.owner !== '')) throw noConversation();
  if (row.epoch === fence.epoch && row.worker !== null) return row;
  throw new ThroughlineError('lease_lost', 'Another worker owns the conversation now.');
}

export function noConversation(): ThroughlineError {
  return new ThroughlineError('not_found', 'There is no such conversation.');
}

export function conversationTaken(): ThroughlineError {
  return new ThroughlineError('conflict', 'A conversation with this id exists already.');
}

export function keyTaken(key: string): ThroughlineError {
  return new ThroughlineError('conflict', `A conversation "${key}" exists already.`, { hint: 'Use another key.' });
}

/** Puts a title into the row. False: the conversation has this title, or one that wins over it. */
export function takesTitle(row: LeaseRow, title: string, source: TitleSource): boolean {
  if (!titleWins(source, row.title_source)) return false;
  if (row.title === title && row.title_source === source) return false;
  row.title = title;
  row.title_source = source;
  return true;
}

/** Frees the conversation from its place; its last holder has lost the lease. Throws `conflict` while somebody holds it, and `refused`. */
export function leavePlace(row: LeaseRow, monotonic: number): void {
  if (row.driver !== 'worker') {
    throw new ThroughlineError(
      'refused',
      'A program runs the agent of this conversation itself. So it has no place, and cannot be moved.',
    );
  }
  if (row.worker !== null && row.ready_at !== null && row.ready_at > monotonic) {
    throw new ThroughlineError('conflict', 'A process holds this conversation.', {
      hint: 'Stop that process, or wait until its lease has ended, and try again.',
    });
  }
  row.epoch += 1;
  row.worker = null;
  row.ready_at = row.pending > 0 ? monotonic : null;
}
