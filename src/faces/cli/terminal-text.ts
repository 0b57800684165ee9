import { type MarkedAs, writtenOut } from '../../core/input/marks.ts';
import { escapedChar, isInvisible } from '../../core/input/visible.ts';
import { shorten } from '../../core/turn/shorten.ts';

/*
 * Text of agents, prompts, titles and files must not steer a terminal. Everything that a person sees passes through here.
 * Escape sequences are removed as a whole, and so is every other control character. A character that reorders text, or that cannot
 * be seen, is shown as its number: `\u{202e}`. In lines and in code it is written out with its name (core/input/marks.ts).
 *
 *   text ──ESC──▶ escape ──[──▶ csi     … final byte ──▶ text
 *     │             ├──] P X ^ _──▶ string … BEL or ST ──▶ text
 *     │             └──space to /──▶ intermediate … final byte ──▶ text
 *     └──a C1 character is the same as ESC and a letter──▶ csi | string
 *
 * It reads one character at a time, and the state outlives the chunk: a sequence cut in two is still one sequence.
 * A newline or a foreign character ends a sequence, and that character is read again as text. So an unfinished sequence
 * swallows its own line at most, and never the rest of an answer.
 */
type State = 'text' | 'escape' | 'intermediate' | 'csi' | 'string' | 'string-escape';

const ESC = 0x1b;
const CSI = 0x9b;
/** Device control, start of string, operating system command, privacy message, application command; as C1, and after ESC. */
const STRINGS_C1 = [0x90, 0x98, 0x9d, 0x9e, 0x9f];
const STRINGS_ESC = [0x50, 0x58, 0x5d, 0x5e, 0x5f];

/** Removes control characters from a text that comes in chunks. However the text is cut, the result is the same. */
export class ControlStripper {
  readonly #keepsInvisible: boolean;
  #state: State = 'text';
  /** A high surrogate, kept until its low surrogate arrives: written separately, both would be lost. */
  #half = '';
  /** The last character of the text, as it was shown; empty: it was not. */
  #before = '';

  /** `keepsInvisible`: characters that cannot be seen stay as they are; for text that is not shown, but sent. */
  constructor({ keepsInvisible = false } = {}) {
    this.#keepsInvisible = keepsInvisible;
  }

  push(chunk: string): string {
    let clean = '';
    for (let index = 0; index < chunk.length; index += 1) {
      const code = chunk.charCodeAt(index);
      if (this.#consume(code)) continue;
      const char = chunk[index] as string;
      if (isHighSurrogate(code)) {
        clean += this.#lost();
        this.#half = char;
      } else if (isLowSurrogate(code)) {
        clean += this.#shown(this.#half === '' ? '\ufffd' : this.#half + char);
        this.#half = '';
      } else clean += this.#lost() + this.#shown(char);
    }
    return clean;
  }

  /** Ends this text; what comes next is another one. */
  end(): string {
    const rest = this.#lost();
    this.#before = '';
    this.#state = 'text';
    return rest;
  }

  #shown(char: string): string {
    const unseen = !this.#keepsInvisible && isInvisible(char, this.#before);
    this.#before = unseen ? '' : char;
    return unseen ? escapedChar(char) : char;
  }

  /** A high surrogate whose low surrogate did not arrive. */
  #lost(): string {
    const lost = this.#half === '' ? '' : this.#shown('\ufffd');
    this.#half = '';
    return lost;
  }

  /** Whether to leave the character out. */
  #consume(code: number): boolean {
    switch (this.#state) {
      case 'text':
        return this.#inText(code);
      case 'escape':
        if (code === 0x5b) return this.#go('csi');
        if (STRINGS_ESC.includes(code)) return this.#go('string');
        if (isIntermediate(code)) return this.#go('intermediate');
        return isFinal(code) ? this.#go('text') : this.#again(code);
      case 'intermediate':
        if (isIntermediate(code)) return true;
        return isFinal(code) ? this.#go('text') : this.#again(code);
      case 'csi':
        if (code >= 0x20 && code <= 0x3f) return true;
        return code >= 0x40 && code <= 0x7e ? this.#go('text') : this.#again(code);
      case 'string':
        return this.#inString(code);
      case 'string-escape':
        return code === 0x5c ? this.#go('text') : this.#escapeInString(code);
    }
  }

  #inText(code: number): boolean {
    if (code === ESC) return this.#go('escape');
    if (code === CSI) return this.#go('csi');
    if (STRINGS_C1.includes(code)) return this.#go('string');
    return isForbidden(code);
  }

  /** Ended by BEL or ST; given up by CAN, SUB or the end of the line. */
  #inString(code: number): boolean {
    if (code === ESC) return this.#go('string-escape');
    if (code === 0x07 || code === 0x9c || code === 0x18 || code === 0x1a) return this.#go('text');
    return code === 0x0a ? this.#again(code) : true;
  }

  /** An ESC in a string that does not begin its end begins another sequence. */
  #escapeInString(code: number): boolean {
    this.#state = 'escape';
    return this.#consume(code);
  }

  #go(state: State): true {
    this.#state = state;
    return true;
  }

  #again(code: number): boolean {
    this.#state = 'text';
    return this.#inText(code);
  }
}

export function stripControls(text: string): string {
  const stripper = new ControlStripper();
  return stripper.push(text) + stripper.end();
}

/**
 * In one line: for titles, previews and everything else in a list. Of a long text, the beginning and the end. `code`: commands and paths,
 * on which somebody relies.
 */
export function oneLine(text: string, as: MarkedAs = 'words'): string {
  const short = text.length <= LONGEST_LINE ? text : shorten(text, LONGEST_LINE);
  const shown = as === 'code' ? codeText(short) : writtenOut(withoutSequences(short), 'words');
  return shown.replaceAll(/\s+/g, ' ').trim();
}

/**
 * Commands, questions, paths and changes. Nothing of them is left out, because a shell does not leave it out either: control characters
 * and what looks like another character are written out.
 */
export function codeText(text: string): string {
  return writtenOut(text, 'code');
}

function withoutSequences(text: string): string {
  const stripper = new ControlStripper({ keepsInvisible: true });
  return stripper.push(text) + stripper.end();
}

/** In at most so many cells of a terminal: a longer text is cut, and its last cell shows that. */
export function cutTo(text: string, most: number): string {
  if (cells(text) <= most) return text;
  let [kept, width] = ['', 0];
  for (const grapheme of graphemes(text)) {
    width += cellsOf(grapheme);
    if (width > most - 1) break;
    kept += grapheme;
  }
  return most < 1 ? '' : `${kept}…`;
}

/** Created when it is first needed: creating it takes a third of the time that Node needs to start. */
let segmenter: Intl.Segmenter | null = null;
// biome-ignore lint/suspicious/noControlCharactersInRegex: everything that is one character by itself
const NARROW = /^[\u0000-\u007e]*$/;

/** What a person sees as one character, each. */
export function graphemes(text: string): string[] {
  if (NARROW.test(text)) return text.split('');
  segmenter ??= new Intl.Segmenter();
  return Array.from(segmenter.segment(text), ({ segment }) => segment);
}

const EMOJI = /^(?:\p{Emoji_Presentation}|\p{Regional_Indicator}|\p{Emoji}\ufe0f)/u;
const ZERO = /^[\p{M}\p{Cf}\p{Cc}]/u;
/** What is two cells wide: Chinese, Japanese, Korean, and full-width forms. */
const WIDE =
  /^[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1b000}-\u{1b2ff}\u{1f200}-\u{1f2ff}\u{20000}-\u{3fffd}]/u;

/** A cell is the place of one narrow character. Chinese characters and emojis take two, combining marks none. */
export function cellsOf(grapheme: string): number {
  const code = grapheme.codePointAt(0) ?? 0;
  if (code < 0x300) return code < 0x20 || code === 0x7f ? 0 : 1;
  if (EMOJI.test(grapheme)) return 2;
  if (ZERO.test(grapheme)) return 0;
  return WIDE.test(grapheme) ? 2 : 1;
}

export function cells(text: string): number {
  if (NARROW.test(text)) return text.length;
  return graphemes(text).reduce((sum, one) => sum + cellsOf(one), 0);
}

/** In bytes: more than one screen of it, and nobody reads more in a list. */
const LONGEST_LINE = 8_000;

/** C0 except tab and newline, DEL, C1. */
export function isForbidden(code: number): boolean {
  return code < 0x20 ? code !== 0x09 && code !== 0x0a : code >= 0x7f && code <= 0x9f;
}

const isIntermediate = (code: number) => code >= 0x20 && code <= 0x2f;
const isFinal = (code: number) => code >= 0x30 && code <= 0x7e;
const isHighSurrogate = (code: number) => code >= 0xd800 && code <= 0xdbff;
const isLowSurrogate = (code: number) => code >= 0xdc00 && code <= 0xdfff;
