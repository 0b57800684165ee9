const CONTINUATION = 0b1100_0000;

/** The last bytes of what a terminal printed. */
export class TerminalOutput {
  readonly #limit: number;
  #kept = Buffer.alloc(0);
  truncated = false;

  constructor(limit: number) {
    this.#limit = Math.max(0, limit);
  }

  /** Reads to the end. Never rejects: a broken pipe is the end. */
  async read(stream: AsyncIterable<Uint8Array>): Promise<void> {
    try {
      for await (const chunk of stream) this.#add(chunk);
    } catch {
      // What was read is what there is.
    }
  }

  get text(): string {
    return this.#kept.toString('utf8');
  }

  #add(chunk: Uint8Array): void {
    const all = Buffer.concat([this.#kept, chunk]);
    if (all.length <= this.#limit) {
      this.#kept = all;
      return;
    }
    this.truncated = true;
    let from = all.length - this.#limit;
    // Never in the middle of a character.
    while (from < all.length && ((all[from] ?? 0) & CONTINUATION) === 0b1000_0000) from += 1;
    this.#kept = all.subarray(from);
  }
}
