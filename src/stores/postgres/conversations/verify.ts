import { type ChainCheck, seqOf } from '../../../core/event.ts';
import { CHAIN_AT, CHAIN_PAGE, type ChainRow, firstBrokenIn, hex, LAST_CHAIN, NO_CHAIN } from '../../shared/chain.ts';
import { verifiedOwner } from '../../shared/verbs/erase.ts';
import { numbered } from '../plans.ts';
import type { Sql } from '../server/connect.ts';
import { carryOut } from '../steps.ts';
import { conversationRow } from './conversations.ts';

const [PAGE, AT, LAST] = [numbered(CHAIN_PAGE), numbered(CHAIN_AT), numbered(LAST_CHAIN)];

/** Checks the chain up to its last event now. `head`: one that was kept elsewhere. */
export async function verify(sql: Sql, owner: string, id: string, head?: string): Promise<ChainCheck> {
  const { no, lastSeq: end } = await conversationRow(sql, await carryOut(sql, verifiedOwner(owner, id)), id);
  const broken = await firstBroken(sql, id, no, end);
  const headAt = async (seq: number) =>
    `${seq}:${hex((await sql.one<{ chain: Uint8Array }>(AT, no, seq))?.chain ?? NO_CHAIN)}`;
  const check = { broken, head: await headAt(end) };
  if (head === undefined) return check;
  return { ...check, kept: broken === null && seqOf(head) <= end && (await headAt(seqOf(head))) === head };
}

/** The first event up to `end` that does not fit the chain; null: it is whole. */
export function firstBroken(sql: Sql, id: string, no: number, end: number): Promise<number | null> {
  return firstBrokenIn(id, end, {
    after: (seq) => sql.all<ChainRow>(PAGE, no, seq, end),
    last: () => sql.one(LAST, no),
  });
}
