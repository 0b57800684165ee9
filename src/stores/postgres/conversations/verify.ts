import { setImmediate as breathe } from 'node:timers/promises';
import { type ChainCheck, seqOf } from '../../../core/event.ts';
import { type ChainRow, hex, linkOf, NO_CHAIN } from '../../shared/chain.ts';
import { verifiedOwner } from '../../shared/verbs/erase.ts';
import type { Sql } from '../server/connect.ts';
import { carryOut } from '../steps.ts';
import { conversationRow } from './conversations.ts';

const PAGE = `
  SELECT e.seq, e.kind, e.at, e.payload, e.salt, e.digest, e.chain, t.id AS turn
  FROM events e LEFT JOIN turns t ON t.no = e.turn WHERE e.conv = $1 AND e.seq > $2 AND e.seq <= $3 ORDER BY e.seq LIMIT 500`;
const CHAIN_AT = 'SELECT chain FROM events WHERE conv = $1 AND seq = $2';
const LAST_CHAIN = 'SELECT chain, next_seq FROM leases WHERE conv = $1';

/** Checks the chain up to its last event now. `head`: one that was kept elsewhere. */
export async function verify(sql: Sql, owner: string, id: string, head?: string): Promise<ChainCheck> {
  const { no, lastSeq: end } = await conversationRow(sql, await carryOut(sql, verifiedOwner(owner, id)), id);
  const broken = await firstBroken(sql, id, no, end);
  const headAt = async (seq: number) =>
    `${seq}:${hex((await sql.one<{ chain: Uint8Array }>(CHAIN_AT, no, seq))?.chain ?? NO_CHAIN)}`;
  const check = { broken, head: await headAt(end) };
  if (head === undefined) return check;
  return { ...check, kept: broken === null && seqOf(head) <= end && (await headAt(seqOf(head))) === head };
}

/** The first event that does not fit the chain; null: it is whole. The hot row has the last link, so a missing tail is found, too. */
export async function firstBroken(sql: Sql, id: string, no: number, end: number): Promise<number | null> {
  let seq = 0;
  let chain = NO_CHAIN;
  while (seq < end) {
    const rows = await sql.all<ChainRow>(PAGE, no, seq, end);
    for (const row of rows) {
      const expected = row.seq === seq + 1 ? linkOf(id, chain, row) : null;
      if (expected === null || hex(expected) !== hex(row.chain)) return seq + 1;
      ({ seq, chain } = row);
    }
    if (rows.length === 0) return seq + 1;
    await breathe();
  }
  return (await endsAs(sql, no, end, chain)) ? null : end;
}

/** If events were added since the check began, the hot row is ahead of `end` and says nothing about it. */
async function endsAs(sql: Sql, conv: number, end: number, chain: Uint8Array): Promise<boolean> {
  const lease = await sql.one<{ chain: Uint8Array; next_seq: number }>(LAST_CHAIN, conv);
  return lease === undefined || lease.next_seq - 1 !== end || hex(lease.chain) === hex(chain);
}
