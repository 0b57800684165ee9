import { createHash } from 'node:crypto';
import type { Conversation } from '../../../core/conversation.ts';
import type { ImportedHistory, NewConversation } from '../../../ports/store/conversations.ts';
import { conversationOf, RECORD, type RecordRow } from '../../shared/rows.ts';
import { checkForkPoint, checkOrder } from '../../shared/turns.ts';
import { readRecord } from '../../shared/verbs/reading.ts';
import { type ForkedTurn, forkTurns, importSessions, importTurns } from '../../shared/writing/imported.ts';
import type { Tx } from '../server/access.ts';
import { carryOut } from '../steps.ts';
import { checkKeyIsFree, conversationRow, insertConversation } from './conversations.ts';

// In one transaction, however long: others can write meanwhile.

const PAGE = 100;
const COPIED = `${RECORD} WHERE r.conv = $1 AND r.n > $2 AND r.n <= $3 ORDER BY r.n LIMIT ${PAGE}`;
const SET_PARENT = 'UPDATE conversations SET parent = $1 WHERE no = $2';

/** Copies rows; long content is shared. The parent's hash is over the JSON of the records, one a line. */
export async function fork(
  tx: Tx,
  owner: string,
  source: string,
  n: number,
  spec: NewConversation,
): Promise<Conversation> {
  const parent = await conversationRow(tx.sql, owner, source);
  checkForkPoint(n, parent.head);
  const named = {
    title: spec.title ?? parent.title,
    source: spec.title === null ? parent.titleSource : 'caller',
  } as const;
  await checkKeyIsFree(tx.sql, owner, spec.key);
  const ledger = await insertConversation(tx, owner, spec, named);
  const hash = createHash('sha256');
  for (let after = 0, rows: RecordRow[] = []; after === 0 || rows.length === PAGE; after = rows.at(-1)?.n ?? n) {
    rows = await tx.sql.all<RecordRow>(COPIED, parent.no, after, n);
    const turns: ForkedTurn[] = [];
    for (const row of rows) {
      const record = await carryOut(tx.sql, readRecord(row));
      hash.update(`${JSON.stringify(record)}\n`);
      turns.push({ ...row, record });
    }
    await carryOut(tx.sql, forkTurns(ledger, turns));
    if (rows.length === 0) break;
  }
  const origin = { conversation: source, n, hash: hash.digest('hex') };
  tx.sql.run(SET_PARENT, JSON.stringify(origin), ledger.row.conv);
  ledger.row.next_n = n + 1;
  ledger.append('conversation.forked', null, origin);
  await ledger.save();
  return conversationOf(await conversationRow(tx.sql, owner, spec.id));
}

export async function importConversation(
  tx: Tx,
  owner: string,
  spec: NewConversation,
  { records, sessions }: ImportedHistory,
): Promise<Conversation> {
  checkOrder(records);
  const named = spec.title === null ? null : ({ title: spec.title, source: 'caller' } as const);
  await checkKeyIsFree(tx.sql, owner, spec.key);
  const ledger = await insertConversation(tx, owner, spec, named);
  await carryOut(tx.sql, importTurns(ledger, records));
  await carryOut(tx.sql, importSessions(ledger, sessions));
  ledger.row.next_n = ledger.row.head + 1;
  ledger.append('conversation.imported', null, { turns: records.length });
  await ledger.save();
  return conversationOf(await conversationRow(tx.sql, owner, spec.id));
}
