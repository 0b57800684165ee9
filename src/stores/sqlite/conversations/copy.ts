import { createHash, type Hash } from 'node:crypto';
import type { Conversation, TitleSource } from '../../../core/conversation.ts';
import type { ImportedHistory, NewConversation } from '../../../ports/store/conversations.ts';
import { pageOf } from '../../shared/page.ts';
import { conversationOf, RECORD, type RecordRow, recordOf } from '../../shared/rows.ts';
import { checkForkPoint, checkOrder } from '../../shared/turns.ts';
import { forkTurns, importSessions, importTurns } from '../../shared/writing/imported.ts';
import type { Access } from '../file/access.ts';
import type { Database } from '../file/database.ts';
import type { Tx } from '../file/write-queue.ts';
import { carryOut } from '../steps.ts';
import { checkKeyIsFree, conversationNo, conversationRow, insertConversation } from './conversations.ts';
import { Ledger } from './ledger.ts';
import { giveUp, markFinished, markGrowing, markUnfinished } from './unfinished.ts';

const COPIED = `${RECORD} WHERE r.conv = ? AND r.n > ? AND r.n <= ? ORDER BY r.n`;
const HIDE = "UPDATE conversations SET owner = '', key = NULL WHERE no = ?";
const REVEAL = 'UPDATE conversations SET owner = ?, key = ?, updated_at = ? WHERE no = ?';
const SET_PARENT = 'UPDATE conversations SET parent = ? WHERE no = ?';
/** A page is stored in a few milliseconds, unless a single turn is larger. */
const PAGE = { limit: 100, bytes: 262_144 } as const;

interface Copied {
  readonly spec: NewConversation;
  readonly named: { readonly title: string; readonly source: TitleSource } | null;
  /** Each adds a page. At least one. Not repeated after it was stored. */
  readonly pages: AsyncIterable<(ledger: Ledger) => void>;
  readonly finish: (ledger: Ledger) => void;
}

/** Makes a conversation of turns that ended elsewhere, page by page: a short one in one transaction. Nobody sees it before its end. */
async function copyInPages(access: Access, owner: string, { spec, named, pages, finish }: Copied) {
  let isHidden = false;
  const store = (add: (ledger: Ledger) => void, isLast: boolean) =>
    access.write((tx) => {
      const ledger = isHidden ? Ledger.byNo(tx, markGrowing(tx, spec.id)) : insertConversation(tx, owner, spec, named);
      add(ledger);
      if (isLast) finish(ledger);
      ledger.save();
      if (isLast && isHidden) reveal(tx, ledger.row.conv, owner, spec);
      else if (!isLast && !isHidden) hide(tx, ledger.row.conv, spec);
      return isLast ? conversationOf(conversationRow(tx.db, owner, spec.id)) : null;
    });
  try {
    for await (const { value, isLast } of withLast(pages)) {
      const made = await store(value, isLast);
      if (made !== null) return made;
      isHidden = true;
    }
    throw new Error('There was no page.');
  } catch (error) {
    // If that fails, too, it is done when the store is opened next.
    if (isHidden) await giveUp(access, spec.id).catch(() => {});
    throw error;
  }
}

function hide(tx: Tx, conv: number, { id }: NewConversation): void {
  tx.db.run(HIDE, conv);
  markUnfinished(tx, id, 'copy', conv);
}

function reveal(tx: Tx, conv: number, owner: string, { id, key }: NewConversation): void {
  checkKeyIsFree(tx.db, owner, key);
  tx.db.run(REVEAL, owner, key, tx.now, conv);
  markFinished(tx, id);
}

async function* withLast<T>(values: AsyncIterable<T>): AsyncGenerator<{ value: T; isLast: boolean }> {
  let before: { value: T } | null = null;
  for await (const value of values) {
    if (before !== null) yield { ...before, isLast: false };
    before = { value };
  }
  if (before !== null) yield { ...before, isLast: true };
}

/** Copies rows; long content is shared. The parent's hash is over the JSON of the records, one a line. */
export async function fork(
  access: Access,
  owner: string,
  source: string,
  n: number,
  spec: NewConversation,
): Promise<Conversation> {
  const parent = await access.read((db) => conversationRow(db, owner, source));
  checkForkPoint(n, parent.head);
  const hash = createHash('sha256');
  return copyInPages(access, owner, {
    spec,
    named: {
      title: spec.title ?? parent.title,
      source: spec.title === null ? parent.titleSource : 'caller',
    },
    pages: forkedPages(access, owner, source, n, hash),
    finish(ledger) {
      const origin = { conversation: source, n, hash: hash.copy().digest('hex') };
      ledger.tx.db.run(SET_PARENT, JSON.stringify(origin), ledger.row.conv);
      ledger.row.next_n = n + 1;
      ledger.append('conversation.forked', null, origin);
    },
  });
}

/** Adds each record to the hash. The source may be erased meanwhile: then `not_found`. */
async function* forkedPages(access: Access, owner: string, source: string, n: number, hash: Hash) {
  for (let last: number | null = 0; last !== null; ) {
    const after: number = last;
    const { page, next } = await access.read((db) => forkedPage(db, conversationNo(db, owner, source), after, n));
    for (const { record } of page) hash.update(`${JSON.stringify(record)}\n`);
    last = next;
    yield (ledger: Ledger) => {
      conversationNo(ledger.tx.db, owner, source);
      carryOut(ledger.tx.db, forkTurns(ledger, page));
    };
  }
}

/** `next`: where the next page begins; null: this is the last. */
function forkedPage(db: Database, conv: number, after: number, n: number) {
  const rows = db.each<RecordRow>(COPIED, conv, after, n);
  const page = pageOf(rows, (row) => ({ ...row, record: recordOf(db, row) }), PAGE);
  const last = page.at(-1)?.n ?? n;
  return { page, next: db.one(COPIED, conv, last, n) === undefined ? null : last };
}

export async function importConversation(
  access: Access,
  owner: string,
  spec: NewConversation,
  { records, sessions }: ImportedHistory,
): Promise<Conversation> {
  checkOrder(records);
  return copyInPages(access, owner, {
    spec,
    named: spec.title === null ? null : { title: spec.title, source: 'caller' },
    pages: importedPages(records, sessions),
    finish(ledger) {
      ledger.row.next_n = ledger.row.head + 1;
      ledger.append('conversation.imported', null, { turns: records.length });
    },
  });
}

/** At least one page. */
async function* importedPages(records: ImportedHistory['records'], sessions: ImportedHistory['sessions']) {
  const refs = new Map<string, string>();
  let from = 0;
  do {
    const page = pageOf(records.slice(from, from + PAGE.limit), (record) => record, PAGE);
    from += page.length;
    const first = from < records.length ? [] : sessions.slice(0, PAGE.limit);
    yield (ledger: Ledger) => {
      carryOut(ledger.tx.db, importTurns(ledger, page));
      carryOut(ledger.tx.db, importSessions(ledger, first, refs));
    };
  } while (from < records.length);
  for (let at: number = PAGE.limit; at < sessions.length; at += PAGE.limit) {
    const page = sessions.slice(at, at + PAGE.limit);
    yield (ledger: Ledger) => carryOut(ledger.tx.db, importSessions(ledger, page, refs));
  }
}
