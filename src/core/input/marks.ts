import { AMONG_LATIN, compatible, LATIN_SHAPED, LETTERS, SCRIPTS, SIGNS } from './look-alikes.ts';
import { isInvisible } from './visible.ts';

/*
 * A person approves what they see. Some characters make a command, a path or a title look like another one: they reorder a line, cannot be
 * seen, or look like another letter. Pages and terminals show each of them as a mark with its name, so that nothing can be forged.
 *
 *   text ──▶ marksIn ──▶ pieces: ordinary text, and marks
 *
 * Writing in any language stays as it is. A letter is marked as a look-alike beside Latin letters in the same word. In code, so is a word
 * whose letters all look Latin, if it touches Latin letters (`раурег.com`), or if nothing else in the text is in its script.
 */

/** `code`: commands, paths, names of files, changes. `words`: titles and explanations, where typographic characters are ordinary. */
export type MarkedAs = 'code' | 'words';

export interface Mark {
  readonly char: string;
  /** What it does. */
  readonly kind: 'reorders' | 'invisible' | 'control' | 'looks-like';
  /** For people, in a few words: `U+202E · turns text round`, `о · Cyrillic`. */
  readonly name: string;
  /** The ordinary text that it looks like; null: it looks like nothing. */
  readonly like: string | null;
}

export type Piece = string | Mark;

/** All that needs no look: printable ASCII, and white space that every view shows. */
const PLAIN = /^[\t\n\x20-\x7e]*$/;

/** A text as ordinary pieces and marks. Joined again (with `char` of each mark), they are the text. */
export function marksIn(text: string, as: MarkedAs): readonly Piece[] {
  if (PLAIN.test(text)) return text === '' ? [] : [text];
  const pieces: Piece[] = [];
  const whole = { text, as, written: new Map() };
  let plain = '';
  let before = '';
  let stacked = 0;
  for (const { char, word, after } of charactersOf(text)) {
    stacked = !traitsOf(char).isPlain && COMBINING.test(char) ? stacked + 1 : 0;
    const mark = markOf({ char, before, after, word, stacked }, whole);
    if (mark === null) plain += char;
    else {
      if (plain !== '') pieces.push(plain);
      plain = '';
      pieces.push(mark);
    }
    before = mark?.kind === 'invisible' ? '' : char;
  }
  if (plain !== '') pieces.push(plain);
  return pieces;
}

/** The text with each mark written out in brackets, for a terminal and for labels: `echo ok # [U+202E · turns text round]…`. */
export function writtenOut(text: string, as: MarkedAs): string {
  return marksIn(text, as)
    .map((piece) => (typeof piece === 'string' ? piece : `[${piece.name}]`))
    .join('');
}

interface Word {
  readonly isLatin: boolean;
  /** Whether Latin letters stand in the same run of characters without a space: `сору` in `сору.com`. */
  readonly touchesLatin: boolean;
  /** Whether it has two letters or more, and each looks like a Latin one. */
  readonly looksLatin: boolean;
  /** It is one letter. */
  readonly isOne: boolean;
}

interface Place {
  /** One character, or a flag that is spelled with tags. */
  readonly char: string;
  /** The character before it; empty: none, or it is marked as invisible. */
  readonly before: string;
  /** The character after it; empty: none. */
  readonly after: string;
  /** Null: it is in none. */
  readonly word: Word | null;
  /** How many combining marks stand on the same letter, with this one. */
  readonly stacked: number;
}

interface Whole {
  readonly text: string;
  readonly as: MarkedAs;
  /** By script: whether the text has letters of it that look like no Latin ones. Filled when first asked. */
  readonly written: Map<string, boolean>;
}

/** Letters and digits that stand together, with the marks above them. */
const WORD = /[\p{L}\p{N}\p{M}]+/gu;
/** The flags of England, Scotland and Wales: the only ones that are spelled with invisible tags. */
const FLAG =
  /^\u{1f3f4}\u{e0067}\u{e0062}(?:\u{e0065}\u{e006e}\u{e0067}|\u{e0073}\u{e0063}\u{e0074}|\u{e0077}\u{e006c}\u{e0073})\u{e007f}/u;

/** Every character with its word, and the one that follows it. */
function* charactersOf(text: string): Generator<Pick<Place, 'char' | 'word' | 'after'>> {
  for (const { 0: run } of text.matchAll(/\s+|\S+/gu)) {
    const touchesLatin = LATIN.test(run);
    let at = 0;
    for (const { 0: word, index } of run.matchAll(WORD)) {
      yield* withNext(run.slice(at, index), null, word);
      at = index + word.length;
      yield* withNext(word, wordOf(word, touchesLatin), run.slice(at));
    }
    yield* withNext(run.slice(at), null, '');
  }
}

function wordOf(text: string, touchesLatin: boolean): Word {
  const isLatin = touchesLatin && LATIN.test(text);
  const letters = isLatin || PLAIN.test(text) ? [] : [...text].filter((char) => traitsOf(char).isLetter);
  const looksLatin = letters.length > 0 && letters.every((char) => traitsOf(char).like !== null);
  return { isLatin, touchesLatin, looksLatin, isOne: letters.length === 1 };
}

function* withNext(
  text: string,
  word: Word | null,
  follows: string,
): Generator<Pick<Place, 'char' | 'word' | 'after'>> {
  for (let at = 0; at < text.length; ) {
    const flag = text.startsWith('\u{1f3f4}', at) ? FLAG.exec(text.slice(at, at + LONGEST_FLAG))?.[0] : undefined;
    const char = flag ?? String.fromCodePoint(text.codePointAt(at) ?? 0);
    at += char.length;
    const next = at < text.length ? text.codePointAt(at) : follows.codePointAt(0);
    yield { char, word, after: next === undefined ? '' : String.fromCodePoint(next) };
  }
}

const LONGEST_FLAG = 14;
const LATIN = /[a-zA-Z]/;
const REORDERS = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/u;
/** Control characters that no view shows; a carriage return at the end of a line is shown as one, too, because it hides a line elsewhere. */
const CONTROL = /[^\P{Cc}\t\n]/u;
const COMBINING = /[\p{Mn}\p{Me}]/u;
const SPACE = /[\s\u2800\u{1d159}]/u;

function markOf(place: Place, whole: Whole): Mark | null {
  const { char, word } = place;
  if (isOrdinary(char, word)) return null;
  const code = codeOf(char);
  if (REORDERS.test(char))
    return { char, kind: 'reorders', name: `${code} · ${DIRECTIONS[char] ?? 'sets the direction'}`, like: null };
  if (CONTROL.test(char)) return { char, kind: 'control', name: `${code} · control character`, like: null };
  const unseen = unseenBecause(place);
  if (unseen !== null) return { char, kind: 'invisible', name: `${code} · ${unseen}`, like: null };
  if (isOddMark(place, whole.as))
    return { char, kind: 'looks-like', name: `${code} · drawn over the text`, like: null };
  const like = word === null ? signLike(char, whole.as) : letterLike(char, word, whole);
  if (like === null) return null;
  if (SPACE.test(char)) return { char, kind: 'looks-like', name: `${code} · space`, like };
  return { char, kind: 'looks-like', name: `${char} · ${scriptOf(char)?.name ?? code}`, like };
}

const DIRECTIONS: Readonly<Record<string, string>> = {
  '\u202e': 'turns text round',
  '\u202d': 'turns text round',
  '\u202c': 'ends a direction',
  '\u2069': 'ends a direction',
};

/** What a character does that cannot be seen; null: it can be seen, or is ordinary writing where it stands. */
function unseenBecause({ char, before, after }: Place): string | null {
  if (char === '\u2028' || char === '\u2029') return 'ends a line';
  // A variant of a digit is only seen in a keycap, and a joiner at the end of an emoji joins nothing.
  const isLoose =
    (char === '\ufe0f' && PLAIN.test(before) && after !== '\u20e3') ||
    (char === '\u200d' && EMOJI.test(before) && !EMOJI.test(after));
  if (isLoose || isInvisible(char, before)) return TAG.test(char) ? 'hidden text' : 'invisible';
  // Private and unassigned characters look like whatever the font has for them, mostly like nothing; so does half of a pair.
  return /[\p{Co}\p{Cn}\p{Cs}\ufffc]/u.test(char) ? 'unknown character' : null;
}

const EMOJI = /[\p{Extended_Pictographic}\p{Emoji_Modifier}]|\ufe0f/u;
const TAG = /[\u{e0001}-\u{e007f}]/u;

/** The most combining marks that languages put on one letter. */
const MOST_STACKED = 4;
/** Strokes and slashes through what stands before them: `=` becomes `≠`. */
const OVERLAY = /[\u0334-\u0338\u20d2\u20d3\u20e5-\u20eb]/u;

function isOddMark({ char, before, word, stacked }: Place, as: MarkedAs): boolean {
  if (!COMBINING.test(char) || isInvisibleVariant(char)) return false;
  if (stacked > MOST_STACKED) return true;
  if (as === 'words') return false;
  const isKeycap = char === '\u20e3' && (/[0-9#*]/.test(before) || before === '\ufe0f');
  const isOnLetter = word !== null && /[\p{L}\p{N}\p{M}]/u.test(before);
  return OVERLAY.test(char) || (!isOnLetter && !isKeycap && (before === '' || PLAIN.test(before)));
}

/** Variation selectors are combining marks by their class; what is odd about them is that they cannot be seen. */
const isInvisibleVariant = (char: string) => /\p{Variation_Selector}/u.test(char);

export function codeOf(char: string): string {
  return `U+${(char.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`;
}

const scriptOf = (char: string) => SCRIPTS.find(({ letter }) => letter.test(char));

function signLike(char: string, as: MarkedAs): string | null {
  return as === 'code' ? (SIGNS.get(char) ?? compatible(char)) : null;
}

function letterLike(char: string, word: Word, whole: Whole): string | null {
  const { like } = traitsOf(char);
  if (word.isLatin) return like ?? AMONG_LATIN.get(char) ?? (LATIN_SHAPED.test(char) ? '' : null);
  if (like === null || whole.as === 'words' || !word.looksLatin) return null;
  // One letter of Greek is a name in mathematics.
  const isAlone = word.isOne && scriptOf(char)?.name !== 'Cyrillic';
  return !isAlone && (word.touchesLatin || !isWritten(whole, char)) ? like : null;
}

/** What is true of a character wherever it stands. Kept, because a text has few different ones, and the tables of Unicode are slow. */
interface Traits {
  readonly isLetter: boolean;
  /** What it looks like in every word; null: nothing, or only among Latin letters. */
  readonly like: string | null;
  /** Nothing is ever odd about it. */
  readonly isPlain: boolean;
  /** A letter or a digit: it may only look like another one. */
  readonly isWriting: boolean;
}

const known = new Map<string, Traits>();
const MOST_KNOWN = 10_000;

function traitsOf(char: string): Traits {
  const before = known.get(char);
  if (before !== undefined) return before;
  if (known.size >= MOST_KNOWN) known.clear();
  const like = LETTERS.get(char) ?? compatible(char);
  const isLetter = /\p{L}/u.test(char);
  const isWriting = /^[\p{L}\p{N}]$/u.test(char) && !isInvisible(char, '') && !LATIN_SHAPED.test(char);
  const isPlain = PLAIN.test(char) || FLAG.test(char) || (isWriting && like === null && !AMONG_LATIN.has(char));
  const traits = { isLetter, like, isPlain, isWriting };
  known.set(char, traits);
  return traits;
}

/** Whether nothing needs to be looked at: most characters of most texts. */
function isOrdinary(char: string, word: Word | null): boolean {
  const { isPlain, isWriting } = traitsOf(char);
  return isPlain || (isWriting && word !== null && !word.isLatin && !word.looksLatin);
}

/** Whether the text has other letters of the same script, which look like no Latin ones. */
function isWritten({ text, written }: Whole, char: string): boolean {
  const script = scriptOf(char);
  if (script === undefined) return false;
  const before = written.get(script.name);
  if (before !== undefined) return before;
  const found = [...text].some((one) => script.letter.test(one) && !LETTERS.has(one));
  written.set(script.name, found);
  return found;
}
