import { Lexer, type Token, type Tokens } from 'marked';
import remend from 'remend';

/*
 * Markdown that grows. A block that another block follows never changes again, so only the last one is read anew when more text comes.
 * A code block that is still open is not read by the lexer at all: it ends at the first line that closes it, and until then everything
 * is code. So the work for each piece of text does not grow with the length of the answer.
 */

/** A piece of an answer that is shown by itself. `key` stays the same for as long as the text only grows. */
export interface Block {
  readonly key: number;
  readonly token: Token;
}

export interface Lexed {
  readonly text: string;
  /** The blocks that no further text changes. */
  readonly finished: readonly Block[];
  /** Where the text begins that is read again. */
  readonly end: number;
  /** The code block there that is not closed; null: there is none. */
  readonly fence: Fence | null;
  readonly blocks: readonly Block[];
}

interface Fence {
  readonly lang: string;
  /** The length of its first line. */
  readonly opening: number;
  readonly closing: RegExp;
  /** Up to here no line closes it. */
  readonly searched: number;
}

export const NOTHING_LEXED: Lexed = { text: '', finished: [], end: 0, fence: null, blocks: [] };

/** Reads `text`, of which the text of `before` is the beginning if it only grew. `isOpen`: more may come. */
export function lex(before: Lexed, text: string, isOpen: boolean): Lexed {
  const from = text.startsWith(before.text) ? before : NOTHING_LEXED;
  const tail = text.slice(from.end);
  if (isOpen && from === before && isHardlyMore(before, text)) return before;
  const fence = openFence(tail, from.fence);
  const tokens: Token[] = fence === null ? new Lexer({ gfm: true }).lex(tail) : [codeOf(tail, fence)];
  const lastShown = tokens.findLastIndex(isShown);
  const followed = tokens.slice(0, Math.max(lastShown, 0));
  const raw = followed.map((token) => token.raw).join('');
  const shown = followed.filter(isShown).map((token, at) => ({ key: from.finished.length + at, token }));
  const finished = shown.length === 0 ? from.finished : [...from.finished, ...shown];
  const last = tokens[lastShown];
  const ending = last === undefined ? [] : [{ key: finished.length, token: isOpen ? completed(last) : last }];
  const blocks = [...finished, ...ending];
  // Where the lexer has changed the text (tabs, line ends), it is read again as a whole.
  if (!tail.startsWith(raw)) return { ...from, text, fence: null, blocks };
  return { text, finished, end: from.end + raw.length, fence: raw === '' ? fence : null, blocks };
}

/** From this length on, the last block is not read again for every word. */
const LARGE = 8_192;

/** The end of a very long block is shown a little later: reading all of it for every word would take ever longer. */
function isHardlyMore({ text: known, end, fence }: Lexed, text: string): boolean {
  const shown = known.length - end;
  return fence === null && shown > LARGE && text.length - known.length < shown / 20;
}

function isShown({ type }: Token): boolean {
  return type !== 'space' && type !== 'def';
}

const OPENING = /^ {0,3}(`{3,}|~{3,})([^\n]*)\n/;

/** The code block that the text begins with and that is not closed yet; null: it begins otherwise, or the block ends in it. */
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

/** The last block of an answer that is still being written: what was begun in it (bold, a link) is closed. */
function completed(token: Token): Token {
  if (token.type === 'code' || token.type === 'html') return token;
  const whole = remend(token.raw, { linkMode: 'text-only', images: false });
  return whole === token.raw ? token : (new Lexer({ gfm: true }).lex(whole).find(isShown) ?? token);
}

/** The address, if a link may have it; null: it may not. Others run scripts or open programs, and relative ones lead nowhere here. */
export function safeHref(href: string): string | null {
  try {
    return ['http:', 'https:', 'mailto:'].includes(new URL(href).protocol) ? href : null;
  } catch {
    return null;
  }
}
