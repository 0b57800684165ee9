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
  /** For people, in a few words: `U+202E · reorders text`, `о · Cyrillic`. */
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
  for (const { char, word } of charactersOf(text)) {
    const mark = markOf(char, before, word, whole);
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

/** The text with each mark written out in brackets, for a terminal and for labels: `echo ok # [U+202E · reorders text]…`. */
export function writtenOut(text: string, as: MarkedAs): string {
  return marksIn(text, as)
    .map((piece) => (typeof piece === 'string' ? piece : `[${piece.name}]`))
    .join('');
}

/** Letters and digits that stand together, with the marks above them. */
const WORD = /[\p{L}\p{N}\p{M}]+/gu;

interface Word {
  readonly text: string;
  /** Whether Latin letters stand in the same run of characters without a space: `сору` in `сору.com`. */
  readonly touchesLatin: boolean;
}

/** Every character, with the word that it is in; null: it is in none. */
function* charactersOf(text: string): Generator<{ readonly char: string; readonly word: Word | null }> {
  for (const { 0: run } of text.matchAll(/\s+|\S+/gu)) {
    const touchesLatin = LATIN.test(run);
    let at = 0;
    for (const { 0: word, index } of run.matchAll(WORD)) {
      for (const char of run.slice(at, index)) yield { char, word: null };
      for (const char of word) yield { char, word: { text: word, touchesLatin } };
      at = index + word.length;
    }
    for (const char of run.slice(at)) yield { char, word: null };
  }
}

const LATIN = /[a-zA-Z]/;
const REORDERS = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/u;
/** Control characters that no view shows; a carriage return at the end of a line is shown as one, too, because it hides a line elsewhere. */
const CONTROL = /[^\P{Cc}\t\n]/u;

interface Whole {
  readonly text: string;
  readonly as: MarkedAs;
  /** By script: whether the text has letters of it that look like no Latin ones. Filled when first asked. */
  readonly written: Map<string, boolean>;
}

function markOf(char: string, before: string, word: Word | null, whole: Whole): Mark | null {
  if (PLAIN.test(char)) return null;
  if (REORDERS.test(char)) return { char, kind: 'reorders', name: `${codeOf(char)} · reorders text`, like: null };
  if (CONTROL.test(char)) return { char, kind: 'control', name: `${codeOf(char)} · control character`, like: null };
  if (isInvisible(char, before)) return { char, kind: 'invisible', name: `${codeOf(char)} · invisible`, like: null };
  const like = word === null ? signLike(char, whole.as) : letterLike(char, word, whole);
  if (like === null) return null;
  const script = scriptOf(char)?.name ?? codeOf(char);
  const name = SPACE.test(char) ? `${codeOf(char)} · space` : `${char} · ${script}`;
  return { char, kind: 'looks-like', name, like };
}

const SPACE = /\s/u;

export function codeOf(char: string): string {
  return `U+${(char.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`;
}

const SCRIPTS = [
  { name: 'Cyrillic', letter: /\p{Script=Cyrillic}/u },
  { name: 'Greek', letter: /\p{Script=Greek}/u },
  { name: 'Armenian', letter: /\p{Script=Armenian}/u },
  { name: 'Cherokee', letter: /\p{Script=Cherokee}/u },
] as const;

const scriptOf = (char: string) => SCRIPTS.find(({ letter }) => letter.test(char));

/** The letters of other scripts that look like a Latin one in common fonts. */
const LETTERS: ReadonlyMap<string, string> = new Map(
  [
    // Cyrillic
    ['асеорхуіјѕһԁԛԝӏԍѵүё', 'aceopxyijshdqwlgvye'],
    ['АВЕКМНОРСТУХІЈЅԌԚԜҮӀѴ', 'ABEKMHOPCTYXIJSGQWYIV'],
    // Greek
    ['αγικνορτυχϲϳ', 'ayiKvoptuxcj'],
    ['ΑΒΕΖΗΙΚΜΝΟΡΤΥΧϹͿ', 'ABEZHIKMNOPTYXCJ'],
    // Armenian
    ['օոսհցյգԼՏՍՕ', 'onuhgjqLSUO'],
    // Cherokee
    ['ᎪᏴᏟᎠᎬᏀᎻᎥᎫᏦᏞᎷᏢᏒᏚᎢᏙᏔᎩᏃ', 'ABCDEGHIJKLMPRSTVWYZ'],
    // Latin itself: letters without their dot, and with another shape of it
    ['ıɑɡǃ', 'iag!'],
  ].flatMap(([from = '', to = '']) => [...from].map((char, index) => [char, to[index] ?? ''] as const)),
);

/** Other signs that look like one of ASCII. */
const SIGNS: ReadonlyMap<string, string> = new Map(
  [
    ['\u2010\u2011\u2012\u2013\u2212\ufe58\u02d7', '-------'],
    ['\u2044\u2215\u29f8\u2571', '////'],
    ['\u2216\u29f5\u29f9', '\\\\\\'],
    ['\u2223\u01c0\u2758', '|||'],
    ['\u037e\u2024\u201a\u02d0\ua789\u2236', ';.,:::'],
    ['\u2018\u2019\u02bc\u02b9\u2032', "'''''"],
    ['\u201c\u201d\u2033', '"""'],
    ['\u02c6\u02dc\u223c\u2217\u204e', '^~~**'],
    [
      '\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000',
      ' '.repeat(16),
    ],
  ].flatMap(([from = '', to = '']) => [...from].map((char, index) => [char, to[index] ?? ''] as const)),
);

function signLike(char: string, as: MarkedAs): string | null {
  return as === 'code' ? (SIGNS.get(char) ?? compatible(char)) : null;
}

function letterLike(char: string, word: Word, whole: Whole): string | null {
  const like = likeOf(char);
  if (like === null || LATIN.test(word.text)) return like;
  const letters = [...word.text].filter((one) => /\p{L}/u.test(one));
  if (whole.as === 'words' || letters.length < 2 || letters.some((one) => likeOf(one) === null)) return null;
  return word.touchesLatin || !isWritten(whole, char) ? like : null;
}

const likeOf = (char: string) => LETTERS.get(char) ?? compatible(char);

/** Whether the text has other letters of the same script, which look like no Latin ones. */
function isWritten({ text, written }: Whole, char: string): boolean {
  const script = scriptOf(char);
  if (script === undefined) return false;
  const known = written.get(script.name);
  if (known !== undefined) return known;
  const found = [...text].some((one) => script.letter.test(one) && !LETTERS.has(one));
  written.set(script.name, found);
  return found;
}

/** Full-width and mathematical letters, Roman numerals, ligatures: Unicode itself says which ASCII they stand for. */
const COMPATIBLE = /[\uff01-\uff5e\u{1d400}-\u{1d7ff}\u2100-\u214f\u2160-\u217f\ufb00-\ufb06]/u;

function compatible(char: string): string | null {
  if (!COMPATIBLE.test(char)) return null;
  const plain = char.normalize('NFKC');
  return PLAIN.test(plain) ? plain : null;
}
