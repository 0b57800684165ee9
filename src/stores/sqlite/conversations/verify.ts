import { setImmediate as breathe } from 'node:timers/promises';
import { type ChainCheck, seqOf } from '../../../core/event.ts';
import { type ChainRow, hex, linkOf, NO_CHAIN } from '../../shared/chain.ts';
import { rowsOfStep } from '../../shared/page.ts';
import { verifiedOwner } from '../../shared/verbs/erase.ts';
import type { Access } from '../file/access.ts';
import type { Database } from '../file/database.ts';
import { losses } from '../loss/losses.ts';
import { carryOut } from '../steps.ts';
import { conversationRow } from './conversations.ts';

const PAGE = `
  SELECT e.seq, e.kind, e.at, e.payload, e.salt, e.digest, e.chain, t.id AS turn
  FROM events e LEFT JOIN turns t ON t.no = e.turn WHERE e.conv = ? AND e.seq > ? AND e.seq <= ? ORDER BY e.seq LIMIT 500`;
const CHAIN_AT = 'SELECT chain FROM events WHERE conv = ? AND seq = ?';
const LAST_CHAIN = 'SELECT chain, next_seq FROM leases WHERE conv = ?';

/** Checks the chain up to its last event now. `head`: one that was kept elsewhere. */
export async function verify(access: Access, owner: string, id: string, head?: string): Promise<ChainCheck> {
  const found = await access.read((db) => rowOrLoss(db, owner, id));
  if ('lost' in found) return { broken: null, head: `0:${hex(NO_CHAIN)}`, ...found, ...(head && { kept: false }) };
  const { no, lastSeq: end } = found;
  const broken = await firstBroken(access, id, no, end);
  return access.read((db) => {
    const headAt = (seq: number) =>
      `${seq}:${hex(db.one<{ chain: Uint8Array }>(CHAIN_AT, no, seq)?.chain ?? NO_CHAIN)}`;
    const check = { broken, head: headAt(end), ...lostOf(db, id) };
    if (head === undefined) return check;
    return { ...check, kept: broken === null && seqOf(head) <= end && headAt(seqOf(head)) === head };
  });
}

/** What is known of a conversation of which nothing is left: not even whose it was. */
function rowOrLoss(db: Database, owner: string, id: string) {
  try {
    return conversationRow(db, carryOut(db, verifiedOwner(owner, id)), id);
  } catch (error) {
    const { lost } = lostOf(db, id);
    if (lost === undefined || lost.has !== null) throw error;
    return { lost };
  }
}

/** The chain of what is left is whole: only what was noticed at the opening says that its end is missing. */
function lostOf(db: Database, id: string): Pick<ChainCheck, 'lost'> {
  const all = losses(db).flatMap(({ conversations }) => conversations);
  const lost = all.findLast(({ conversationId }) => conversationId === id);
  return lost === undefined ? {} : { lost: { had: lost.had, has: lost.has } };
}

/**
 * The first event that does not fit the chain; null: it is whole. Page by page, so that other work of this process continues
 * between. The hot row has the last link, so a missing tail is found, too.
 */
export async function firstBroken(
  access: Pick<Access, 'read'>,
  id: string,
  no: number,
  end: number,
): Promise<number | null> {
  let seq = 0;
  let chain = NO_CHAIN;
  while (seq < end) {
    const after = seq;
    const rows = await access.read((db) => rowsOfStep(db.each<ChainRow>(PAGE, no, after, end), (row) => row.payload));
    for (const row of rows) {
      const expected = row.seq === seq + 1 ? linkOf(id, chain, row) : null;
      if (expected === null || hex(expected) !== hex(row.chain)) return seq + 1;
      ({ seq, chain } = row);
    }
    if (rows.length === 0) return seq + 1;
    await breathe();
  }
  return (await access.read((db) => endsAs(db, no, end, chain))) ? null : end;
}

/** If events were added since the check began, the hot row is ahead of `end` and says nothing about it. */
function endsAs(db: Database, conv: number, end: number, chain: Uint8Array): boolean {
  const lease = db.one<{ chain: Uint8Array; next_seq: number }>(LAST_CHAIN, conv);
  return lease === undefined || lease.next_seq - 1 !== end || hex(lease.chain) === hex(chain);
}
