/** Answers of the server may arrive out of order. Drops an answer if a later request about the same has already been answered. */
export class Newest {
  #asked = 0;
  readonly #answered = new Map<string, number>();

  /** The answer; null: a newer one about the same has arrived. Rejects as `read` does. */
  async of<T>(what: string, read: Promise<T>): Promise<T | null> {
    this.#asked += 1;
    const asked = this.#asked;
    const answer = await read;
    if (asked < (this.#answered.get(what) ?? 0)) return null;
    this.#answered.set(what, asked);
    return answer;
  }
}
