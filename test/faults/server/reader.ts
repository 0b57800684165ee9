import { createParser } from 'eventsource-parser';

/** Follows a conversation over HTTP until it is closed. Reconnects whenever the connection is lost. */
export class Reader {
  readonly seqs: number[] = [];
  readonly #stop = new AbortController();
  #connection = new AbortController();
  readonly #done: Promise<void>;
  readonly #onEvent: (event: ReadEvent) => void;
  connections = 0;

  /** `address`: a function is called again for every connection. */
  constructor(
    address: string | (() => string),
    headers: Record<string, string>,
    onEvent: (event: ReadEvent) => void = () => {},
  ) {
    this.#onEvent = onEvent;
    this.#done = this.#follow(address, headers);
  }

  /** Cuts the current connection. The reader reconnects as after any other loss. */
  cut(): void {
    this.#connection.abort();
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await this.#done;
  }

  async #follow(address: string | (() => string), headers: Record<string, string>): Promise<void> {
    const { signal } = this.#stop;
    while (!signal.aborted) {
      try {
        const last = { 'last-event-id': String(this.seqs.at(-1) ?? 0) };
        this.#connection = new AbortController();
        const either = AbortSignal.any([signal, this.#connection.signal]);
        const at = typeof address === 'string' ? address : address();
        await this.#read(await fetch(at, { headers: { ...headers, ...last }, signal: either }));
      } catch {
        // The server is not there. With a pause, because twenty readers must not slow down the server that starts.
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
    }
  }

  async #read(response: Response): Promise<void> {
    if (response.status !== 200) throw new Error(`The server says ${response.status}.`);
    this.connections += 1;
    const parser = createParser({
      onEvent: ({ data }) => {
        const event: ReadEvent = JSON.parse(data);
        this.seqs.push(event.seq);
        this.#onEvent(event);
      },
    });
    const decoder = new TextDecoder();
    for await (const chunk of response.body ?? []) parser.feed(decoder.decode(chunk, { stream: true }));
  }
}

export interface ReadEvent {
  readonly seq: number;
  readonly kind: string;
  readonly turnId: string | null;
}
