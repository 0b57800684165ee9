import { setImmediate as breathe } from 'node:timers/promises';
import { type ChainCheck, seqOf } from '../../../core/event.ts';
import type { Access } from '../file/access.ts';
import type { Database } from '../file/database.ts';
import { hex, NO_CHAIN, nextChain, payloadDigest } from './chain.ts';
import { conversationNo, conversationRow } from './conversations.ts';
import { verifiedOwner } from './erase.ts';

interface ChainRow {
  seq: number;
  kind: string;
  at: number;
  payload: string | null;
  salt: Uint8Array | null;
  digest: Uint8Array | null;
  chain: Uint8Array;
  turn: string | null;
}

const PAGE = `
  SELECT e.seq, e.kind, e.at, e.payload, e.salt, e.digest, e.chain, t.id AS turn
  FROM events e LEFT JOIN turns t ON t.no = e.turn WHERE e.conv = ? AND e.seq > ? AND e.seq <= ? ORDER BY e.seq LIMIT 500`;
const CHAIN_AT = 'SELECT chain FROM events WHERE conv = ? AND seq = ?';
const LAST_CHAIN = 'SELECT chain, next_seq FROM leases WHERE conv = ?';

/** Page by page, so that other work of this process goes on between. */
export async function verify(access: Access, owner: string, id: string, head?: string): Promise<ChainCheck> {
  const under = await access.read((db) => verifiedOwner(db, owner, id));
  const end = await access.read((db) => conversationRow(db, under, id).lastSeq);
  for (let walk = START; ; ) {
    const at = walk;
    const step = await access.read((db) => verifyPage(db, under, id, at, end));
    if ('broken' in step) return access.read((db) => foundIn(db, under, id, { ...step, end }, head));
    walk = step.next;
    await breathe();
  }
}

interface Walk {
  /** The chain is whole up to this event. */
  readonly seq: number;
  readonly chain: Uint8Array;
}

const START: Walk = { seq: 0, chain: NO_CHAIN };

/** `broken` null: the chain is whole. */
type Step = { readonly broken: number | null } | { readonly next: Walk };

/** Checks one page of the chain after `from`, up to `end`. The hot row has the last link, so a missing tail is found, too. */
function verifyPage(db: Database, owner: string, id: string, from: Walk, end: number): Step {
  const no = conversationNo(db, owner, id);
  let { seq, chain } = from;
  const rows = db.all<ChainRow>(PAGE, no, seq, end);
  for (const row of rows) {
    const expected = row.seq === seq + 1 ? linkOf(id, chain, row) : null;
    if (expected === null || hex(expected) !== hex(row.chain)) return { broken: seq + 1 };
    chain = row.chain;
    seq = row.seq;
  }
  if (rows.length > 0 && seq < end) return { next: { seq, chain } };
  if (seq < end) return { broken: seq + 1 };
  return endsAs(db, no, end, chain) ? { broken: null } : { broken: end };
}

/** What the walk to `end` has found. `head`: one that was kept elsewhere. */
function foundIn(db: Database, owner: string, id: string, walked: Walked, head?: string): ChainCheck {
  const no = conversationNo(db, owner, id);
  const { broken, end } = walked;
  const headAt = (seq: number) => `${seq}:${hex(db.one<{ chain: Uint8Array }>(CHAIN_AT, no, seq)?.chain ?? NO_CHAIN)}`;
  if (head === undefined) return { broken, head: headAt(end) };
  const kept = broken === null && seqOf(head) <= end && headAt(seqOf(head)) === head;
  return { broken, head: headAt(end), kept };
}

interface Walked {
  readonly broken: number | null;
  readonly end: number;
}

function linkOf(conversation: string, before: Uint8Array, row: ChainRow): Uint8Array | null {
  const { payload, salt, digest } = row;
  if (payload !== null && salt !== null)
    return nextChain(before, payloadDigest(salt, payload), { conversation, ...row });
  return digest === null ? null : nextChain(before, hex(digest), { conversation, ...row });
}

/** If events were added since the check began, the hot row is ahead of `end` and says nothing about it. */
function endsAs(db: Database, conv: number, end: number, chain: Uint8Array): boolean {
  const lease = db.one<{ chain: Uint8Array; next_seq: number }>(LAST_CHAIN, conv);
  return lease === undefined || lease.next_seq - 1 !== end || hex(lease.chain) === hex(chain);
}
