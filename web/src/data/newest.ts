/** Answers of the server may overtake each other. One that was asked for before another that is here already is not to be applied. */
export class Newest {
  #asked = 0;
  readonly #here = new Map<string, number>();

  /** The answer, or null if a newer one about the same is here. Rejects as `read` does. */
  async of<T>(what: string, read: Promise<T>): Promise<T | null> {
    this.#asked += 1;
    const asked = this.#asked;
    const answer = await read;
    if (asked < (this.#here.get(what) ?? 0)) return null;
    this.#here.set(what, asked);
    return answer;
  }
}
