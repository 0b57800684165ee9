import type { AgentEvent, AgentOutcome } from '../../ports/agent.ts';

const FULL = 1_000;

/** The events of one prompt on their way to whoever consumes them. `ended` is the last, once, whatever comes after. */
export class EventQueue {
  #events: AgentEvent[] = [];
  #ended = false;
  #released = false;
  #abandoned = false;
  #wakeConsumer: (() => void) | null = null;
  #wakeProducer: (() => void) | null = null;

  push(event: AgentEvent): void {
    if (this.#ended || this.#abandoned) return;
    this.#events.push(event);
    this.#wakeConsumer?.();
  }

  end(outcome: AgentOutcome): void {
    this.push({ type: 'ended', outcome });
    this.#ended = true;
    this.release();
  }

  get ended(): boolean {
    return this.#ended;
  }

  /** Resolves when there is room for more: a consumer that is slow slows the agent instead of filling our memory. */
  async room(): Promise<void> {
    while (this.#events.length >= FULL && !this.#released) {
      await new Promise<void>((resolve) => {
        this.#wakeProducer = resolve;
      });
    }
  }

  /** Nobody is waited for any more. */
  release(): void {
    this.#released = true;
    this.#wakeProducer?.();
  }

  /** Nobody consumes any more: what still comes is dropped. */
  abandon(): void {
    this.#abandoned = true;
    this.#events = [];
    this.release();
  }

  /** Every event up to and with `ended`. */
  async *drain(): AsyncGenerator<AgentEvent> {
    for (;;) {
      const events = this.#events;
      this.#events = [];
      this.#wakeProducer?.();
      for (const event of events) {
        yield event;
        if (event.type === 'ended') return;
      }
      if (this.#events.length === 0) {
        await new Promise<void>((resolve) => {
          this.#wakeConsumer = resolve;
        });
        this.#wakeConsumer = null;
      }
    }
  }

  /** The same for whoever runs the turn: an abort stops the agent, and so does leaving in the middle. */
  async *handOut(signal: AbortSignal, stop: () => void): AsyncGenerator<AgentEvent> {
    signal.addEventListener('abort', stop, { once: true });
    try {
      yield* this.drain();
    } finally {
      signal.removeEventListener('abort', stop);
      // Whoever leaves in the middle must not leave the agent working.
      if (!this.#ended) stop();
      this.abandon();
    }
  }
}
