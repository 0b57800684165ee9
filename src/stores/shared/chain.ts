import { hash, randomFillSync } from 'node:crypto';
import { setImmediate as breathe } from 'node:timers/promises';

/*
 * The chain shows damage to a conversation's events. Whoever can write the database can compute it again; decision 0047 says how
 * to notice that.
 *
 *   digest = sha256(salt ‖ payload)
 *   chain  = sha256(chain before ‖ digest ‖ [conversation, seq, kind, turn, at])      the first "chain before" is empty
 *
 * Erasing a payload deletes it and its salt and keeps the digest: the chain can still be checked, and without the salt nobody can
 * guess the payload and compare.
 */
export interface Link {
  readonly conversation: string;
  readonly seq: number;
  readonly kind: string;
  readonly turn: string | null;
  readonly at: number;
}

export const NO_CHAIN: Uint8Array = new Uint8Array(0);

const SALT_BYTES = 16;
/** Random bytes for many salts are made at once, because that costs as much as for one. Each salt is used once. */
let salts = new Uint8Array(0);

export function newSalt(): Uint8Array {
  if (salts.length === 0) salts = randomFillSync(new Uint8Array(256 * SALT_BYTES));
  const salt = salts.subarray(0, SALT_BYTES);
  salts = salts.subarray(SALT_BYTES);
  return salt;
}

export function payloadDigest(salt: Uint8Array, payload: string): string {
  return hash('sha256', hex(salt) + payload, 'hex');
}

export function nextChain(before: Uint8Array, digest: string, link: Link): Uint8Array {
  const facts = JSON.stringify([link.conversation, link.seq, link.kind, link.turn, link.at]);
  return Buffer.from(hash('sha256', hex(before) + digest + facts, 'hex'), 'hex');
}

export function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('hex');
}

// ── checking ──

/** Events of a conversation: after one, and up to another. */
export const CHAIN_PAGE = `
  SELECT e.seq, e.kind, e.at, e.payload, e.salt, e.digest, e.chain, t.id AS turn
  FROM events e LEFT JOIN turns t ON t.no = e.turn WHERE e.conv = ? AND e.seq > ? AND e.seq <= ? ORDER BY e.seq LIMIT 500`;
export const CHAIN_AT = 'SELECT chain FROM events WHERE conv = ? AND seq = ?';
export const LAST_CHAIN = 'SELECT chain, next_seq FROM leases WHERE conv = ?';

/** A stored event, with the id of its turn. */
export interface ChainRow extends Omit<Link, 'conversation'> {
  readonly payload: string | null;
  readonly salt: Uint8Array | null;
  readonly digest: Uint8Array | null;
  readonly chain: Uint8Array;
}

/** How a store reads the events of one conversation, and its hot row. */
export interface ChainReader {
  /** Empty: there are no events after this one. */
  after(seq: number): Promise<readonly ChainRow[]>;
  last(): Promise<{ readonly chain: Uint8Array; readonly next_seq: number } | undefined>;
}

/**
 * The first event up to `end` that does not fit the chain; null: it is whole. Page by page, so that other work of this process continues in between.
 * The hot row has the last link, so that missing events at the end are found, too.
 */
export async function firstBrokenIn(id: string, end: number, read: ChainReader): Promise<number | null> {
  let seq = 0;
  let chain = NO_CHAIN;
  while (seq < end) {
    const rows = await read.after(seq);
    for (const row of rows) {
      const expected = row.seq === seq + 1 ? linkOf(id, chain, row) : null;
      if (expected === null || hex(expected) !== hex(row.chain)) return seq + 1;
      ({ seq, chain } = row);
    }
    if (rows.length === 0) return seq + 1;
    await breathe();
  }
  const last = await read.last();
  // If events were added since the check began, the hot row is ahead of `end`, and cannot be compared.
  const isSame = last === undefined || last.next_seq - 1 !== end || hex(last.chain) === hex(chain);
  return isSame ? null : end;
}

/** What the chain should be after an event; null: it cannot be computed, because payload and digest are missing. */
function linkOf(conversation: string, before: Uint8Array, row: ChainRow): Uint8Array | null {
  const { payload, salt, digest } = row;
  if (payload !== null && salt !== null)
    return nextChain(before, payloadDigest(salt, payload), { conversation, ...row });
  return digest === null ? null : nextChain(before, hex(digest), { conversation, ...row });
}
