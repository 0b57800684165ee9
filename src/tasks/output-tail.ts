import type { GateResult } from '../core/task-gate.ts';

/** The end of what a program writes, on both outputs in the order in which it came; however much that is. */
export class OutputTail {
  readonly #most: number;
  #text = '';
  #cut = 0;

  constructor(most: number) {
    this.#most = most;
  }

  async read(stream: AsyncIterable<Uint8Array>): Promise<void> {
    const decoder = new TextDecoder();
    for await (const bytes of stream) this.#add(decoder.decode(bytes, { stream: true }));
    this.#add(decoder.decode());
  }

  /** As text without halves of characters: a cut may have been in the middle of one. */
  result(): Pick<GateResult, 'output' | 'cut'> {
    this.#shorten(this.#most);
    return { output: this.#text.toWellFormed().trimEnd(), cut: this.#cut };
  }

  #add(text: string): void {
    this.#text += text;
    if (this.#text.length > 2 * this.#most) this.#shorten(this.#most);
  }

  #shorten(most: number): void {
    const over = this.#text.length - most;
    if (over <= 0) return;
    this.#text = this.#text.slice(over);
    this.#cut += over;
  }
}
