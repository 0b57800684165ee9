import type { Engine } from '../../src/ports/engine.ts';

/** Waits until the event loop has done what the last step left, so that it does not count in the next measurement. */
export async function idle(): Promise<void> {
  for (let i = 0; i < 3; i += 1) await new Promise(setImmediate);
}

/** Follows one conversation, as a face does, and records when it saw the first words and the end of each turn. */
export class TurnWatch {
  readonly #stop = new AbortController();
  readonly #first = new Map<string, PromiseWithResolvers<number>>();
  readonly #ended = new Map<string, PromiseWithResolvers<number>>();
  readonly done: Promise<void>;

  constructor(engine: Engine, conversation: string, after: number) {
    this.done = this.#follow(engine, conversation, after);
  }

  /** When the first update of the turn was seen. */
  first(turn: string): Promise<number> {
    return entry(this.#first, turn).promise;
  }

  ended(turn: string): Promise<number> {
    return entry(this.#ended, turn).promise;
  }

  stop(): Promise<void> {
    this.#stop.abort();
    return this.done;
  }

  async #follow(engine: Engine, conversation: string, after: number): Promise<void> {
    for await (const event of engine.follow(conversation, { after, signal: this.#stop.signal })) {
      if (event.turnId === null) continue;
      if (event.kind === 'turn.update') entry(this.#first, event.turnId).resolve(performance.now());
      if (event.kind !== 'turn.ended') continue;
      if (event.payload.outcome !== 'completed') throw new Error(JSON.stringify(event.payload.failure));
      entry(this.#ended, event.turnId).resolve(performance.now());
    }
  }
}

function entry(map: Map<string, PromiseWithResolvers<number>>, turn: string): PromiseWithResolvers<number> {
  const known = map.get(turn) ?? Promise.withResolvers<number>();
  map.set(turn, known);
  return known;
}
