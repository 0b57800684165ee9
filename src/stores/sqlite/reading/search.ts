import { promptText } from '../../../core/turn/content.ts';
import { replyText } from '../../../core/turn/record.ts';
import type { SearchHit } from '../../../ports/store/history.ts';
import { pageOf, readable } from '../../shared/page.ts';
import { type RecordRow, recordOf } from '../../shared/rows.ts';
import { searchedWords, snippet, type TitleRow, titlesFirst } from '../../shared/search.ts';
import { LIMIT } from '../../shared/verbs/steps.ts';
import type { Database } from '../file/database.ts';

const SEARCH = `
  SELECT r.turn, r.owner, r.n, r.body, r.body_refs, t.prompt, t.prompt_refs, c.id AS conversation, c.key, c.title
  FROM words w JOIN turns t ON t.no = w.rowid JOIN records r ON r.turn = t.no JOIN conversations c ON c.no = t.conv
  WHERE words MATCH ? AND c.owner = ? ORDER BY w.rank ${LIMIT}`;

/** Most recently changed first. The index has the titles of all owners; the conversation says whose it is. */
const TITLED = `
  SELECT c.id AS conversation, c.key, c.title
  FROM titles w JOIN conversations c ON c.no = w.rowid
  WHERE titles MATCH ? AND c.owner = ? ORDER BY c.updated_at DESC, c.id DESC ${LIMIT}`;

type HitRow = RecordRow & TitleRow;

/** Turns and titles that contain all the words. They are quoted, so that none is read as an expression. */
export function search(db: Database, owner: string, query: string, limit: number): SearchHit[] {
  const most = Math.max(0, limit);
  const { words, isBegun } = searchedWords(query);
  const match = `${words.map((word) => `"${word.replaceAll('"', '""')}"`).join(' ')}${isBegun ? '*' : ''}`;
  const turns = searchTurns(db, owner, { words, match, limit: most });
  const titled = db.all<TitleRow>(TITLED, match, owner, most + turns.length);
  return titlesFirst(titled, turns, most);
}

interface Asked {
  readonly words: readonly string[];
  readonly match: string;
  readonly limit: number;
}

function searchTurns(db: Database, owner: string, { words, match, limit }: Asked): SearchHit[] {
  // One record at a time: they may be large, and only a snippet of each is kept.
  const rows = db.each<HitRow>(SEARCH, match, owner, limit);
  const hits = readable(db, rows, (row) => {
    const record = recordOf(db, row);
    const text = `${promptText(record.prompt)}\n${replyText(record.parts)}`;
    return { conversation: row.conversation, key: row.key, title: row.title, n: row.n, snippet: snippet(text, words) };
  });
  return pageOf(hits, (hit) => hit);
}
