import { type ChainCheck, seqOf } from '../../../core/event.ts';
import { CHAIN_AT, CHAIN_PAGE, type ChainRow, firstBrokenIn, hex, LAST_CHAIN, NO_CHAIN } from '../../shared/chain.ts';
import { rowsOfStep } from '../../shared/page.ts';
import { verifiedOwner } from '../../shared/verbs/erase.ts';
import type { Access } from '../file/access.ts';
import type { Database } from '../file/database.ts';
import { losses } from '../loss/losses.ts';
import { carryOut } from '../steps.ts';
import { conversationRow } from './conversations.ts';

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

/** The row; or, if all of the conversation was lost, what is known of the loss. Then its owner is unknown. */
function rowOrLoss(db: Database, owner: string, id: string) {
  try {
    return conversationRow(db, carryOut(db, verifiedOwner(owner, id)), id);
  } catch (error) {
    const { lost } = lostOf(db, id);
    if (lost === undefined || lost.has !== null) throw error;
    return { lost };
  }
}

/** The chain does not show that events at its end are missing, but the losses that were noticed at the opening do. */
function lostOf(db: Database, id: string): Pick<ChainCheck, 'lost'> {
  const all = losses(db).flatMap(({ conversations }) => conversations);
  const lost = all.findLast(({ conversationId }) => conversationId === id);
  return lost === undefined ? {} : { lost: { had: lost.had, has: lost.has } };
}

/** The first event up to `end` that does not fit the chain; null: it is whole. */
export function firstBroken(access: Pick<Access, 'read'>, id: string, no: number, end: number): Promise<number | null> {
  return firstBrokenIn(id, end, {
    after: (seq) => access.read((db) => rowsOfStep(db.each<ChainRow>(CHAIN_PAGE, no, seq, end), (row) => row.payload)),
    last: () => access.read((db) => db.one(LAST_CHAIN, no)),
  });
}
