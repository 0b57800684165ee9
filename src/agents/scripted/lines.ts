const NEWLINE = 10;
/** Longer lines are dropped as they come, so that an endless one costs no memory. */
export const MAX_LINE_BYTES = 8 * 1024 * 1024;

/** Cuts bytes into lines. Never throws, holds at most one line, and counts what it drops. */
export class LineReader {
  dropped = 0;
  readonly #onLine: (line: string) => void;
  readonly #limit: number;
  #partial: Uint8Array[] = [];
  #bytes = 0;
  #dropping = false;

  constructor(onLine: (line: string) => void, limit = MAX_LINE_BYTES) {
    this.#onLine = onLine;
    this.#limit = limit;
  }

  push(chunk: Uint8Array): void {
    let from = 0;
    for (let at = chunk.indexOf(NEWLINE); at !== -1; at = chunk.indexOf(NEWLINE, from)) {
      this.#keep(chunk.subarray(from, at));
      this.#finish();
      from = at + 1;
    }
    this.#keep(chunk.subarray(from));
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
  }

  #finish(): void {
    const line = this.#dropping ? null : Buffer.concat(this.#partial).toString('utf8');
    if (line === null) this.dropped += 1;
    this.#partial = [];
    this.#bytes = 0;
    this.#dropping = false;
    if (line !== null) this.#onLine(line);
  }
}
