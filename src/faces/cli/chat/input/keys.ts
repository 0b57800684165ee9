import { ControlStripper } from '../../terminal-text.ts';

/*
 * What a terminal sends, as keys. Control characters and escape sequences become names; everything between them is text, however
 * many characters an input method sends at once. A paste (bracketed, as we ask the terminal to mark it) is one key.
 *
 *   text ──ESC──▶ sequence, Alt with a key, or the Escape key when nothing follows ──▶ text
 *     └──ESC [ 200 ~──▶ paste … ESC [ 201 ~ ──▶ text
 */
export type KeyName =
  | 'enter'
  | 'newline'
  | 'tab'
  | 'escape'
  | 'backspace'
  | 'delete'
  | 'left'
  | 'right'
  | 'up'
  | 'down'
  | 'home'
  | 'end'
  | 'word-left'
  | 'word-right'
  | 'delete-word'
  | 'delete-word-right'
  | 'kill-start'
  | 'kill-end'
  | 'yank'
  | 'interrupt'
  | 'eof'
  | 'suspend'
  | 'redraw';

export type Key = { readonly name: KeyName } | { readonly name: 'text' | 'paste'; readonly text: string };

/** By the letter that is pressed with Ctrl. */
const WITH_CONTROL: Readonly<Record<string, KeyName>> = {
  a: 'home',
  b: 'left',
  c: 'interrupt',
  d: 'eof',
  e: 'end',
  f: 'right',
  h: 'backspace',
  i: 'tab',
  j: 'newline',
  k: 'kill-end',
  l: 'redraw',
  m: 'enter',
  n: 'down',
  p: 'up',
  u: 'kill-start',
  w: 'delete-word',
  y: 'yank',
  z: 'suspend',
};

/** By the character that is pressed with Alt. */
const WITH_ALT: Readonly<Record<string, KeyName>> = {
  '\r': 'newline',
  '\n': 'newline',
  '\u007f': 'delete-word',
  '\b': 'delete-word',
  b: 'word-left',
  f: 'word-right',
  d: 'delete-word-right',
};

const BY_FINAL: Readonly<Record<string, KeyName>> = {
  A: 'up',
  B: 'down',
  C: 'right',
  D: 'left',
  H: 'home',
  F: 'end',
};
const BY_NUMBER: Readonly<Record<string, KeyName>> = { 1: 'home', 3: 'delete', 4: 'end', 7: 'home', 8: 'end' };

const WORDWISE: Partial<Record<KeyName, KeyName>> = {
  left: 'word-left',
  right: 'word-right',
  delete: 'delete-word-right',
  backspace: 'delete-word',
};

const PASTE_BEGINS = '\u001b[200~';
const PASTE_ENDS = '\u001b[201~';
// biome-ignore lint/suspicious/noControlCharactersInRegex: that is what a terminal sends
const SEQUENCE = /^\u001b\[([0-9;:<=>?]*)[ -/]*([@-~])/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: that is what a terminal sends
const APPLICATION = /^\u001bO([A-Z])/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: that is what a terminal sends
const CONTROL = /[\u0000-\u001f\u007f]/;

/** Reads keys from chunks of input. A sequence that is cut in two is still one. */
export class KeyReader {
  #rest = '';
  #paste: string | null = null;

  /** Whether there is an Escape that may be a key, or the beginning of a sequence. */
  get waits(): boolean {
    return this.#rest !== '';
  }

  push(chunk: string): Key[] {
    this.#rest += chunk;
    const keys: Key[] = [];
    while (this.#rest !== '') {
      const length = this.#rest.length;
      const key = this.#paste === null ? this.#next() : this.#pasted();
      if (key !== null) keys.push(key);
      else if (this.#rest.length === length) break;
    }
    return keys;
  }

  /** Nothing has followed for a while: the Escape was the key. */
  flush(): Key[] {
    if (this.#paste !== null || this.#rest === '') return [];
    const rest = this.#rest.slice(1);
    this.#rest = '';
    return [{ name: 'escape' }, ...(rest === '' ? [] : this.push(rest))];
  }

  /** Null: more input is needed, or the sequence is not a known key. */
  #next(): Key | null {
    const rest = this.#rest;
    const at = rest.search(CONTROL);
    if (at !== 0) return this.#take(at === -1 ? rest.length : at, { name: 'text', text: '' });
    if (rest[0] !== '\u001b') return this.#take(1, controlKey(rest));
    if (rest.startsWith(PASTE_BEGINS)) {
      this.#paste = '';
      return this.#take(PASTE_BEGINS.length, null);
    }
    const sequence = SEQUENCE.exec(rest);
    if (sequence) return this.#take(sequence[0].length, sequenceKey(sequence[1] ?? '', sequence[2] ?? ''));
    const application = APPLICATION.exec(rest);
    if (application) return this.#take(3, named(BY_FINAL[application[1] ?? '']));
    const second = rest[1];
    if (second === undefined || ((second === '[' || second === 'O') && rest.length < 64)) return null;
    if (second === '\u001b') return this.#take(1, { name: 'escape' });
    return this.#take(2, named(WITH_ALT[second]));
  }

  #pasted(): Key | null {
    const end = this.#rest.indexOf(PASTE_ENDS);
    if (end === -1) {
      // A part of the end mark may have arrived.
      const keep = Math.min(this.#rest.length, PASTE_ENDS.length - 1);
      this.#paste += this.#rest.slice(0, this.#rest.length - keep);
      this.#rest = this.#rest.slice(this.#rest.length - keep);
      return null;
    }
    const text = this.#paste + this.#rest.slice(0, end);
    this.#paste = null;
    return this.#take(end + PASTE_ENDS.length, { name: 'paste', text: cleanPaste(text) });
  }

  #take(length: number, key: Key | null): Key | null {
    const taken = this.#rest.slice(0, length);
    this.#rest = this.#rest.slice(length);
    return key?.name === 'text' && key.text === '' ? { name: 'text', text: taken } : key;
  }
}

/** What is pasted is text: its line ends become ours, and its control characters are left out. The rest is sent as it is. */
function cleanPaste(text: string): string {
  const stripper = new ControlStripper({ keepsInvisible: true });
  return stripper.push(text.replaceAll('\r\n', '\n').replaceAll('\r', '\n')) + stripper.end();
}

function named(name: KeyName | undefined): Key | null {
  return name === undefined ? null : { name };
}

function controlKey(text: string): Key | null {
  const code = text.charCodeAt(0);
  return code === 0x7f ? { name: 'backspace' } : named(WITH_CONTROL[String.fromCharCode(code + 0x60)]);
}

function sequenceKey(parameters: string, final: string): Key | null {
  const [first = '', second = '', third = ''] = parameters.split(';').map((each) => each.split(':')[0] ?? '');
  if (final === 'u') return codeKey(Number(first), Number(second || 1));
  // The older protocol of xterm for a key with modifiers.
  if (final === '~' && first === '27') return codeKey(Number(third), Number(second || 1));
  const name = final === '~' ? BY_NUMBER[first] : BY_FINAL[final];
  const modifiers = Number(second || 1) - 1;
  const wordwise = name !== undefined && (modifiers & (ALT | CONTROLS)) !== 0 ? WORDWISE[name] : undefined;
  return named(wordwise ?? name);
}

/** Keys of the keypad that type no character have codes of their own. */
const KEYPAD: Readonly<Record<number, KeyName>> = {
  57414: 'enter',
  57417: 'left',
  57418: 'right',
  57419: 'up',
  57420: 'down',
  57423: 'home',
  57424: 'end',
  57426: 'delete',
};

const SHIFT = 1;
const ALT = 2;
const CONTROLS = 4;

/** A key by its code point and modifiers, such as Shift-Enter where the terminal distinguishes it from Enter. */
function codeKey(code: number, modified: number): Key | null {
  const modifiers = modified - 1;
  if (KEYPAD[code] !== undefined) return { name: KEYPAD[code] };
  if (code === 13) return { name: (modifiers & (SHIFT | ALT | CONTROLS)) === 0 ? 'enter' : 'newline' };
  if (code === 27) return { name: 'escape' };
  if (code === 127) return { name: (modifiers & (ALT | CONTROLS)) === 0 ? 'backspace' : 'delete-word' };
  if (code < 32 || code > 0x10ffff || (code >= 57_344 && code <= 63_743)) return code === 9 ? { name: 'tab' } : null;
  const char = String.fromCodePoint(code);
  if (modifiers & CONTROLS) return named(WITH_CONTROL[char.toLowerCase()]);
  if (modifiers & ALT) return named(WITH_ALT[char]);
  return { name: 'text', text: char };
}
