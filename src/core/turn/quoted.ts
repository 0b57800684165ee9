import { jsonLine } from '../input/visible.ts';
import { byteLength } from './shorten.ts';

/*
 * Quotes text of others inside of a text of ours that has headings and marks at the beginning of its lines. Every quoted line is
 * indented, so that it cannot look like one of ours. Every character that a reader may take for the end of a line counts as one.
 */

/** The characters that end a line in Unicode and in Python. */
const BREAKS = '\n\v\f\r\u001c\u001d\u001e\u0085\u2028\u2029';
const LINE_BEGINS = new RegExp(`(^|\\r\\n|[${BREAKS}])(?=[^${BREAKS}])`, 'g');
const LINE_BREAKS = new RegExp(`[${BREAKS}]`);
const INDENT = '  ';

/** The text with every line indented. Empty lines stay empty. */
export function quoted(text: string): string {
  return text.replace(LINE_BEGINS, `$1${INDENT}`);
}

/** UTF-8 length of the text when it is quoted. */
export function quotedBytes(text: string): number {
  return byteLength(text) + (text.match(LINE_BEGINS)?.length ?? 0) * INDENT.length;
}

/**
 * The indentation for the rest of a line whose beginning was left out, if that line was indented or named a file: otherwise the quoted
 * text would look like ours. `before`: all text before the rest.
 */
export function indentOfRest(before: string): string {
  const begin = Math.max(...[...BREAKS].map((end) => before.lastIndexOf(end))) + 1;
  return /^[ ["]/.test(before.slice(begin)) ? INDENT : '';
}

export function isOneLine(text: string): boolean {
  return !LINE_BREAKS.test(text);
}

/** A name within a line of ours: unchanged if it is one word, otherwise as a JSON string. */
export function word(name: string): string {
  return /^[\p{L}\p{N}_./@+-]+$/u.test(name) ? name : jsonLine(name.toWellFormed());
}

/** A word of a command that people copy into a shell. */
export function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/** A text at the end of a line of ours: unchanged if it is one line of visible characters, otherwise as a JSON string. */
export function restOfLine(text: string): string {
  return /^(?!["\s])[^\p{C}\p{Zl}\p{Zp}]+$/u.test(text) ? text : jsonLine(text.toWellFormed());
}
