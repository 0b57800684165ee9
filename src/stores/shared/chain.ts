import { hash, randomFillSync } from 'node:crypto';

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
/** Random bytes for many salts cost as much as for one. Each salt is used once. */
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

/** A stored event, with the id of its turn. */
export interface ChainRow {
  readonly seq: number;
  readonly kind: string;
  readonly at: number;
  readonly payload: string | null;
  readonly salt: Uint8Array | null;
  readonly digest: Uint8Array | null;
  readonly chain: Uint8Array;
  readonly turn: string | null;
}

/** What the chain should be after an event; null: nothing is left to compute it from. */
export function linkOf(conversation: string, before: Uint8Array, row: ChainRow): Uint8Array | null {
  const { payload, salt, digest } = row;
  if (payload !== null && salt !== null)
    return nextChain(before, payloadDigest(salt, payload), { conversation, ...row });
  return digest === null ? null : nextChain(before, hex(digest), { conversation, ...row });
}
