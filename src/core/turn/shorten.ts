/** Lengths in UTF-8 and texts shortened to them, without an encoder: `core` stays pure. */

/** UTF-8 length. An unpaired surrogate is written as U+FFFD: three bytes. */
export function byteLength(text: string): number {
  let bytes = text.length;
  for (let i = 0; i < text.length; i += 1) {
    const code = text.charCodeAt(i);
    if (code <= 0x7f) continue;
    if (code <= 0x7ff) bytes += 1;
    else {
      bytes += 2;
      // A whole pair is two units and four bytes, so its second unit adds nothing more.
      if (isHigh(code) && isLow(text.charCodeAt(i + 1))) i += 1;
    }
  }
  return bytes;
}

/** Stands for what was left out of a text. A loaded history is recognised by it as well. */
export function leftOutMark(characters: number): string {
  return `[… ${characters} characters left out …]`;
}

const MARK = /\[… \d+ characters left out …\]/;

/** Whether something was left out of a text. */
export function isShortened(text: string): boolean {
  return MARK.test(text);
}

/** How a mark looks when all white space was removed. */
export const UNSPACED_MARK = /\[…\d+charactersleftout…\]/g;

/** The least that a text can be shortened to: the mark, and a little before and after it. */
export const SHORTEST = 100;

/**
 * The text, or its beginning and its end with the mark between them: at most `bytes` long, if that is `SHORTEST` or more. `lead` gets the
 * text before the end, and returns what is put before the end. That adds to the length.
 */
export function shorten(text: string, bytes: number, lead: (before: string) => string = () => ''): string {
  // No character has more than three bytes a unit.
  if (text.length * 3 <= bytes || (text.length <= bytes && byteLength(text) <= bytes)) return text;
  return shortened(text, 0, bytes, lead);
}

/** Text that comes in pieces, and is shortened to so many bytes. Keeps only what that needs. */
export class LongText {
  readonly #bytes: number;
  #kept = '';
  /** How many characters are missing after the first `#bytes` of what is kept. */
  #missing = 0;

  constructor(bytes: number) {
    this.#bytes = bytes;
  }

  add(piece: string): void {
    const text = this.#kept + piece;
    const most = 4 * this.#bytes;
    // The beginning and the end that are kept have at most so many bytes, and no character has less than one.
    this.#kept = text.length <= most ? text : text.slice(0, this.#bytes) + text.slice(-this.#bytes);
    this.#missing += text.length - this.#kept.length;
  }

  get shortened(): string {
    if (this.#missing === 0) return shorten(this.#kept, this.#bytes);
    return shortened(this.#kept, this.#missing, this.#bytes, () => '');
  }
}

/** `missing`: how many more characters were left out between the beginning and the end. */
function shortened(text: string, missing: number, bytes: number, lead: (before: string) => string): string {
  const room = bytes - byteLength(leftOutMark(text.length + missing)) - 2;
  const head = text.slice(0, unitsFromStart(text, Math.ceil((room * 2) / 3)));
  const tail = text.slice(text.length - unitsFromEnd(text, Math.floor(room / 3)));
  const mark = leftOutMark(text.length + missing - head.length - tail.length);
  return `${head}\n${mark}\n${lead(text.slice(0, text.length - tail.length))}${tail}`;
}

/** How many units at the beginning of a text have at most so many bytes. Pairs stay whole. */
function unitsFromStart(text: string, bytes: number): number {
  let [units, left] = [0, bytes];
  while (units < text.length) {
    const pair = isHigh(text.charCodeAt(units)) && isLow(text.charCodeAt(units + 1));
    left -= pair ? 4 : unitBytes(text.charCodeAt(units));
    if (left < 0) break;
    units += pair ? 2 : 1;
  }
  return units;
}

function unitsFromEnd(text: string, bytes: number): number {
  let [units, left] = [0, bytes];
  while (units < text.length) {
    const at = text.length - 1 - units;
    const pair = isLow(text.charCodeAt(at)) && isHigh(text.charCodeAt(at - 1));
    left -= pair ? 4 : unitBytes(text.charCodeAt(at));
    if (left < 0) break;
    units += pair ? 2 : 1;
  }
  return units;
}

function unitBytes(code: number): number {
  return code <= 0x7f ? 1 : code <= 0x7ff ? 2 : 3;
}

const isHigh = (code: number) => code >= 0xd800 && code <= 0xdbff;
const isLow = (code: number) => code >= 0xdc00 && code <= 0xdfff;
