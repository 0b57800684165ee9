import { ThroughlineError } from '../../../core/errors.ts';
import { promptText } from '../../../core/turn/content.ts';
import { replyText } from '../../../core/turn/record.ts';
import type { SearchHit } from '../../../ports/store/history.ts';
import { type RecordRow, recordOf } from '../conversations/rows.ts';
import { type Database, LIMIT } from '../file/database.ts';
import { pageOf, readable } from './page.ts';

const SEARCH = `
  SELECT r.turn, r.owner, r.n, r.body, r.body_refs, t.prompt, t.prompt_refs, c.id AS conversation, c.key, c.title
  FROM words w JOIN turns t ON t.no = w.rowid JOIN records r ON r.turn = t.no JOIN conversations c ON c.no = t.conv
  WHERE words MATCH ? AND c.owner = ? ORDER BY w.rank ${LIMIT}`;

/** Most recently changed first. The index has the titles of all owners; the conversation says whose it is. */
const TITLED = `
  SELECT c.id AS conversation, c.key, c.title
  FROM titles w JOIN conversations c ON c.no = w.rowid
  WHERE titles MATCH ? AND c.owner = ? ORDER BY c.updated_at DESC, c.id DESC ${LIMIT}`;

type TitleRow = Pick<SearchHit, 'conversation' | 'key' | 'title'>;
type HitRow = RecordRow & TitleRow;

/** Nearly every turn has a word that begins with a given letter. */
const LEAST_PREFIX = 2;

/**
 * Turns that contain all the words, after the conversations whose title does. Those are left out whose turns are found, and they get at least
 * half of the places. The last word may be the beginning of a word: somebody may still be typing it. Words are quoted, so
 * that none is read as an expression.
 */
export function search(db: Database, owner: string, query: string, limit: number): SearchHit[] {
  const most = Math.max(0, limit);
  const words = query
    .replaceAll('\u0000', ' ')
    .split(/\s+/)
    .filter((word) => /[\p{L}\p{N}]/u.test(word));
  if (words.length === 0) throw new ThroughlineError('invalid', 'The search has no words.');
  const isBegun = (words.at(-1)?.match(/[\p{L}\p{N}]/gu)?.length ?? 0) >= LEAST_PREFIX;
  const match = `${words.map((word) => `"${word.replaceAll('"', '""')}"`).join(' ')}${isBegun ? '*' : ''}`;
  const turns = searchTurns(db, owner, { words, match, limit: most });
  const found = new Set(turns.map(({ conversation }) => conversation));
  const titled = db
    .all<TitleRow>(TITLED, match, owner, most + found.size)
    .filter(({ conversation }) => !found.has(conversation))
    .slice(0, Math.max(Math.floor(most / 2), most - turns.length))
    .map((row) => ({ ...row, n: null, snippet: row.title }));
  return [...titled, ...turns.slice(0, most - titled.length)];
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

const BEFORE = 60;
const LENGTH = 200;

/** The text around the first of the words. The index ignores case and accents, and so does this. */
function snippet(text: string, words: readonly string[]): string {
  const at = firstOf(text, words);
  const start = at <= BEFORE ? 0 : at - BEFORE;
  const cut = text
    .slice(start, start + LENGTH)
    .replace(/\s+/g, ' ')
    .trim();
  return `${start > 0 ? '…' : ''}${cut}${start + LENGTH < text.length ? '…' : ''}`;
}

const WINDOW = 16_384;

/** Where the first of the words is. Looked for piece by piece: the text may be long, and the word is mostly near its beginning. */
function firstOf(text: string, words: readonly string[]): number {
  const wanted = words.map((word) => fold(word).folded);
  // An accent can be a character of its own.
  const overlap = 4 * Math.max(...words.map((word) => word.length));
  for (let start = 0; start < text.length; start += WINDOW) {
    const { folded, places } = fold(text.slice(start, start + WINDOW + overlap));
    const found = wanted.map((word) => folded.indexOf(word)).filter((at) => at >= 0);
    if (found.length > 0) return start + (places[Math.min(...found)] ?? 0);
  }
  return 0;
}

/** Without case and accents, with the original position of each character. */
function fold(text: string): { folded: string; places: number[] } {
  const characters: string[] = [];
  const places: number[] = [];
  for (let at = 0; at < text.length; at += 1) {
    const character = text.charAt(at).toLowerCase();
    const plain = character < '\u0080' ? character : character.normalize('NFD').replace(/\p{M}/gu, '');
    for (const each of plain) {
      characters.push(each);
      places.push(at);
    }
  }
  return { folded: characters.join(''), places };
}
