import { Lexer, type Token, type Tokens } from 'marked';
import remend from 'remend';

/*
 * Incremental Markdown. A block that is followed by another never changes again, so only the last one is lexed again when more text
 * arrives. An open code block is not lexed at all: until the first line that closes it, everything is code. So the work for each piece
 * of text does not grow with the length of the answer.
 */

/** A block of an answer. `key` stays the same while the text only grows. */
export interface Block {
  readonly key: number;
  readonly token: Token;
}

export interface Lexed {
  readonly text: string;
  /** The blocks that more text cannot change. */
  readonly finished: readonly Block[];
  /** Where the last block begins, which is lexed again. */
  readonly end: number;
  /** The open code block at `end`; null: there is none. */
  readonly fence: Fence | null;
  /** The last block as it was lexed; null: there is none. */
  readonly last: Block | null;
  readonly blocks: readonly Block[];
}

interface Fence {
  readonly lang: string;
  /** The length of its first line. */
  readonly opening: number;
  readonly closing: RegExp;
  /** Up to this position no line closes it. */
  readonly searched: number;
}

export const NOTHING_LEXED: Lexed = { text: '', finished: [], end: 0, fence: null, last: null, blocks: [] };

/** Lexes `text`, using `before` if its text is the beginning of `text`. `isOpen`: more may come. */
export function lex(before: Lexed, text: string, isOpen: boolean): Lexed {
  const from = text.startsWith(before.text) ? before : NOTHING_LEXED;
  const tail = text.slice(from.end);
  if (isOpen && from === before && canWait(before, text)) return { ...before, blocks: withUnread(before, text) };
  const fence = openFence(tail, from.fence);
  const tokens: Token[] = fence === null ? new Lexer({ gfm: true }).lex(tail) : [codeOf(tail, fence)];
  const lastShown = tokens.findLastIndex(isShown);
  const followed = tokens.slice(0, Math.max(lastShown, 0));
  const raw = followed.map((token) => token.raw).join('');
  const shown = followed.filter(isShown).map((token, at) => ({ key: from.finished.length + at, token }));
  const finished = shown.length === 0 ? from.finished : [...from.finished, ...shown];
  const last = tokens[lastShown];
  const ending = last === undefined ? null : { key: finished.length, token: isOpen ? completed(last) : last };
  const blocks = ending === null ? finished : [...finished, ending];
  // The lexer may change the text (tabs, line ends), so that positions do not match. Then all of it is lexed again the next time.
  if (!tail.startsWith(raw)) return { ...from, text, fence: null, last: ending, blocks };
  return { text, finished, end: from.end + raw.length, fence: raw === '' ? fence : null, last: ending, blocks };
}

/** From this length on, the last block is not lexed again for every word. */
const LARGE = 8_192;
/** What begins another block, or another item. */
const BEGINS_BLOCK = /\n[ \t]*(?:\n|[-*+#>`~|=<]|\d+[.)])/;

/** Lexing all of a very long block for every word would take longer and longer. Until it has grown by a part, words are only added. */
function canWait({ text: known, end, fence, last }: Lexed, text: string): boolean {
  const [lexed, more] = [known.length - end, text.length - known.length];
  if (fence !== null || lexed <= LARGE) return false;
  if (last?.token.type !== 'paragraph') return more < lexed / 20;
  return more < lexed / 4 && !BEGINS_BLOCK.test(text.slice(known.length - 1));
}

/** The blocks with the words that were not lexed at the end of the last paragraph. In a list or a table they are shown a little later. */
function withUnread({ text: known, finished, last }: Lexed, text: string): readonly Block[] {
  if (last === null) return finished;
  const more = text.slice(known.length);
  if (last.token.type !== 'paragraph' || more === '') return [...finished, last];
  // The lexer leaves out white space at the end.
  const added = /\s$/.test(known) ? ` ${more}` : more;
  const unread = { type: 'text', raw: added, text: added, escaped: false };
  const token = { ...last.token, raw: last.token.raw + added, tokens: [...(last.token.tokens ?? []), unread] };
  return [...finished, { ...last, token: token as Token }];
}

export function isShown({ type }: Token): boolean {
  return type !== 'space' && type !== 'def';
}

const OPENING = /^ {0,3}(`{3,}|~{3,})([^\n]*)\n/;

/** The open code block at the beginning of the text; null: the text does not begin with one, or it is closed. */
function openFence(text: string, known: Fence | null): Fence | null {
  const fence = known ?? fenceAt(text);
  if (fence === null || fence.closing.test(text.slice(fence.searched))) return null;
  return { ...fence, searched: Math.max(fence.searched, text.lastIndexOf('\n') + 1) };
}

function fenceAt(text: string): Fence | null {
  const [opening, marks = '', info = ''] = OPENING.exec(text) ?? [];
  if (opening === undefined || (marks.startsWith('`') && info.includes('`'))) return null;
  const closing = new RegExp(`^ {0,3}${marks[0]}{${marks.length},}[ \\t]*$`, 'm');
  return { lang: info.trim(), opening: opening.length, closing, searched: opening.length };
}

function codeOf(raw: string, { lang, opening }: Fence): Tokens.Code {
  return { type: 'code', raw, lang, text: raw.slice(opening) };
}

/** The last block of an unfinished answer, with open marks (bold, a link) closed. */
function completed(token: Token): Token {
  if (token.type === 'code' || token.type === 'html') return token;
  const whole = remend(token.raw, { linkMode: 'text-only', images: false });
  return whole === token.raw ? token : (new Lexer({ gfm: true }).lex(whole).find(isShown) ?? token);
}

/** The address, if it is allowed in a link; null: it is not. Other schemes run scripts or open programs, and relative ones have no target. */
export function safeHref(href: string): string | null {
  try {
    return ['http:', 'https:', 'mailto:'].includes(new URL(href).protocol) ? href : null;
  } catch {
    return null;
  }
}
