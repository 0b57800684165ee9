const NEWLINE = 10;

/**
 * A line can hold the result of a tool, with images: the largest that a model takes is 7 MB. A longer line is not a message, and
 * must not fill our memory.
 */
export const MAX_LINE_BYTES = 64 * 1024 * 1024;

/**
 * Splits bytes into lines. Holds at most one line. A line over the limit is reported once, and its bytes are dropped as they
 * come, so that an endless line needs no memory. Never throws.
 */
export class LineReader {
  readonly #onLine: (line: string) => void;
  readonly #onTooLong: () => void;
  readonly #limit: number;
  #partial: Uint8Array[] = [];
  #bytes = 0;
  #dropping = false;

  constructor(onLine: (line: string) => void, onTooLong: () => void, limit = MAX_LINE_BYTES) {
    this.#onLine = onLine;
    this.#onTooLong = onTooLong;
    this.#limit = limit;
  }

  push(chunk: Uint8Array): void {
    let from = 0;
    for (let at = chunk.indexOf(NEWLINE); at !== -1; at = chunk.indexOf(NEWLINE, from)) {
      this.#keep(chunk.subarray(from, at));
      this.#finish();
      from = at + 1;
    }
    // A copy, because the caller may reuse its buffer.
    if (from < chunk.length) this.#keep(Uint8Array.from(chunk.subarray(from)));
  }

  /** Bytes after the last newline: more than zero while a line is incomplete. */
  get pending(): number {
    return this.#bytes;
  }

  /** The output has ended: bytes after the last newline are a line, too. */
  end(): void {
    if (this.#bytes > 0) this.#finish();
  }

  #keep(bytes: Uint8Array): void {
    if (this.#dropping || bytes.length === 0) return;
    this.#bytes += bytes.length;
    if (this.#bytes <= this.#limit) {
      this.#partial.push(bytes);
      return;
    }
    this.#dropping = true;
    this.#partial = [];
    this.#onTooLong();
  }

  #finish(): void {
    const line = this.#dropping ? null : Buffer.concat(this.#partial).toString('utf8');
    this.#partial = [];
    this.#bytes = 0;
    this.#dropping = false;
    if (line !== null) this.#onLine(line);
  }
}
