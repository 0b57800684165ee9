import { graphemes } from '../../terminal-text.ts';
import type { Key, KeyName } from './keys.ts';

/*
 * The line editor: a state and a key give the next state. The text may have several lines. The cursor stands before, after or between
 * graphemes, never inside one.
 *
 *   editing ──up on the first line──▶ an earlier prompt ──down on the last line──▶ a later one, at last the draft
 *      └──Enter──▶ submitted; a backslash before it is a new line instead
 */
export interface Editor {
  readonly text: string;
  /** Where the cursor is, in code units. */
  readonly at: number;
  /** What was cut last, for Ctrl-Y. */
  readonly cut: string;
  /** Earlier prompts, oldest first. */
  readonly history: readonly string[];
  /** Which of them is shown; null: the text of the person. */
  readonly place: number | null;
  /** What the person had written before looking at earlier prompts. */
  readonly draft: string;
}

interface Edited {
  readonly editor: Editor;
  /** The prompt to send; left out: none. */
  readonly submitted?: string;
}

export function newEditor(history: readonly string[]): Editor {
  return { text: '', at: 0, cut: '', history, place: null, draft: '' };
}

export function withText(editor: Editor, text: string): Editor {
  return { ...editor, text, at: text.length, place: null };
}

/** Adds a prompt to the history. */
export function remember(editor: Editor, prompt: string): Editor {
  const history = editor.history.at(-1) === prompt ? editor.history : [...editor.history, prompt];
  return { ...editor, history, place: null };
}

/** Keys that mean nothing here leave the editor as it is. */
export function edit(editor: Editor, key: Key): Edited {
  switch (key.name) {
    case 'text':
    case 'paste':
      return { editor: inserted(editor, key.text) };
    case 'newline':
      return { editor: inserted(editor, '\n') };
    case 'enter':
      return entered(editor);
    case 'up':
    case 'down':
      return { editor: vertical(editor, key.name) };
    default:
      return { editor: CHANGES[key.name]?.(editor) ?? editor };
  }
}

function entered(editor: Editor): Edited {
  const { text, at } = editor;
  if (text[at - 1] === '\\') return { editor: replaced(editor, at - 1, at, '\n') };
  if (text.trim() === '') return { editor: withText(editor, '') };
  return { editor: { ...withText(editor, ''), draft: '' }, submitted: text };
}

const CHANGES: Partial<Record<KeyName, (editor: Editor) => Editor>> = {
  left: (editor) => moved(editor, before(editor.text, editor.at)),
  right: (editor) => moved(editor, after(editor.text, editor.at)),
  home: (editor) => moved(editor, lineStart(editor.text, editor.at)),
  end: (editor) => moved(editor, lineEnd(editor.text, editor.at)),
  'word-left': (editor) => moved(editor, wordLeft(editor.text, editor.at)),
  'word-right': (editor) => moved(editor, wordRight(editor.text, editor.at)),
  backspace: (editor) => replaced(editor, before(editor.text, editor.at), editor.at, ''),
  delete: deleted,
  eof: deleted,
  'delete-word': (editor) => cutOut(editor, wordLeft(editor.text, editor.at), editor.at),
  'delete-word-right': (editor) => cutOut(editor, editor.at, wordRight(editor.text, editor.at)),
  'kill-start': (editor) => cutOut(editor, lineStart(editor.text, editor.at), editor.at),
  // At the end of a line, the line end itself.
  'kill-end': (editor) =>
    cutOut(editor, editor.at, Math.max(lineEnd(editor.text, editor.at), after(editor.text, editor.at))),
  yank: (editor) => inserted(editor, editor.cut),
};

function deleted(editor: Editor): Editor {
  return replaced(editor, editor.at, after(editor.text, editor.at), '');
}

function moved(editor: Editor, at: number): Editor {
  return { ...editor, at };
}

function inserted(editor: Editor, text: string): Editor {
  return replaced(editor, editor.at, editor.at, text);
}

function replaced(editor: Editor, from: number, to: number, text: string): Editor {
  const whole = editor.text.slice(0, from) + text + editor.text.slice(to);
  return { ...editor, text: whole, at: from + text.length };
}

function cutOut(editor: Editor, from: number, to: number): Editor {
  const cut = editor.text.slice(from, to);
  return { ...replaced(editor, from, to, ''), cut: cut === '' ? editor.cut : cut };
}

function lineStart(text: string, at: number): number {
  return text.lastIndexOf('\n', at - 1) + 1;
}

function lineEnd(text: string, at: number): number {
  const end = text.indexOf('\n', at);
  return end === -1 ? text.length : end;
}

/** The beginning of the grapheme before the cursor. */
function before(text: string, at: number): number {
  if (at === 0) return 0;
  const start = lineStart(text, at);
  if (start === at) return at - 1;
  return at - (graphemes(text.slice(start, at)).at(-1)?.length ?? 0);
}

function after(text: string, at: number): number {
  if (at >= text.length) return at;
  if (text[at] === '\n') return at + 1;
  return at + (graphemes(text.slice(at, lineEnd(text, at)))[0]?.length ?? 0);
}

const WORD = /[\p{L}\p{N}\p{M}_]+/gu;

function wordLeft(text: string, at: number): number {
  const words = [...text.slice(0, at).matchAll(WORD)];
  return words.at(-1)?.index ?? 0;
}

function wordRight(text: string, at: number): number {
  const [word] = text.slice(at).matchAll(WORD);
  return word === undefined ? text.length : at + word.index + word[0].length;
}

/** To the line above or below; beyond the first and the last one, to the prompts before and after. */
function vertical(editor: Editor, direction: 'up' | 'down'): Editor {
  const { text, at, history, place, draft } = editor;
  const [start, end] = [lineStart(text, at), lineEnd(text, at)];
  const column = graphemes(text.slice(start, at)).length;
  if (direction === 'up' && start > 0) return moved(editor, atColumn(text, lineStart(text, start - 1), column));
  if (direction === 'down' && end < text.length) return moved(editor, atColumn(text, end + 1, column));
  const next = (place ?? history.length) + (direction === 'up' ? -1 : 1);
  if (next < 0 || next > history.length || (place === null && direction === 'down')) return editor;
  const kept = place === null ? text : draft;
  const shown = history[next] ?? kept;
  return { ...editor, text: shown, at: shown.length, place: next === history.length ? null : next, draft: kept };
}

function atColumn(text: string, start: number, column: number): number {
  const line = graphemes(text.slice(start, lineEnd(text, start)));
  return start + line.slice(0, column).join('').length;
}
