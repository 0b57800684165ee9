import { promptText } from '../../../core/turn/content.ts';
import { replyText } from '../../../core/turn/record.ts';
import type { SearchHit } from '../../../ports/store/history.ts';
import { pageOf } from '../../shared/page.ts';
import type { RecordRow } from '../../shared/rows.ts';
import { searchedWords, snippet, type TitleRow, titlesFirst, wordsOf } from '../../shared/search.ts';
import { readRecord } from '../../shared/verbs/reading.ts';
import type { Sql } from '../server/connect.ts';
import { carryOut } from '../steps.ts';

// Newest first: the index has no places of words, so that there is no better order.
const SEARCH = `
  SELECT r.turn, r.owner, r.n, r.body, r.body_refs, t.prompt, t.prompt_refs, c.id AS conversation, c.key, c.title
  FROM words w JOIN turns t ON t.no = w.turn JOIN records r ON r.turn = t.no JOIN conversations c ON c.no = t.conv
  WHERE w.lexemes @@ $1::tsquery AND w.owner = $2 AND c.owner = $2 ORDER BY t.no DESC LIMIT $3`;
const TITLED = `
  SELECT c.id AS conversation, c.key, c.title FROM conversations c
  WHERE c.title_words @@ $1::tsquery AND c.owner = $2 ORDER BY c.updated_at DESC, c.no DESC LIMIT $3`;

/** Turns and titles that contain all the words, in any order. A word with signs in it counts as several. */
export async function search(sql: Sql, owner: string, query: string, limit: number): Promise<SearchHit[]> {
  const most = Math.max(0, limit);
  const { words, isBegun } = searchedWords(query);
  const lexemes = words.map(wordsOf);
  // Lexemes are letters and digits alone, so that none is read as an expression.
  const parts = lexemes.flat().map((word) => `'${word}'`);
  const match = `${parts.join(' & ')}${isBegun ? ':*' : ''}`;
  const rows = await sql.all<RecordRow & TitleRow>(SEARCH, match, owner, most);
  const hits: SearchHit[] = [];
  for (const row of rows) {
    const record = await carryOut(sql, readRecord(row)).catch((error: unknown) => {
      if (!(error instanceof SyntaxError)) throw error;
      sql.onDamage(error);
    });
    if (record === undefined) continue;
    const text = `${promptText(record.prompt)}\n${replyText(record.parts)}`;
    const { conversation, key, title, n } = row;
    hits.push({ conversation, key, title, n, snippet: snippet(text, words) });
  }
  const turns = pageOf(hits, (hit) => hit);
  return titlesFirst(await sql.all<TitleRow>(TITLED, match, owner, most + turns.length), turns, most);
}
