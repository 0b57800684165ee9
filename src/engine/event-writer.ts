import { PartsBuilder } from '../core/record.ts';
import { chunkText, UPDATE_VERSION, type Update } from '../core/update.ts';
import type { Lease } from './lease.ts';

/**
 * Stores what an agent does. Chunks of text are joined and stored at the latest `flushMs` after the first of them; all else
 * is stored at once. The first chunk after a pause does not wait: nobody looks at an empty screen for the sake of a batch.
 */
export class EventWriter {
  readonly parts = new PartsBuilder();
  readonly #lease: Lease;
  readonly #turn: string;
  readonly #flushMs: number;
  #chunks: { update: Update; texts: string[] } | null = null;
  #timer: NodeJS.Timeout | null = null;
  #flushedAt = Number.NEGATIVE_INFINITY;

  constructor(lease: Lease, turn: string, flushMs: number) {
    this.#lease = lease;
    this.#turn = turn;
    this.#flushMs = flushMs;
  }

  /** Resolves when the next update may come, not when this one is durable. */
  async add(update: Update): Promise<void> {
    this.parts.add(update);
    const text = joinable(update) ? chunkText(update) : null;
    if (text === null) {
      this.flush();
      this.#store(update);
    } else if (this.#chunks && sameStream(this.#chunks.update, update)) {
      this.#chunks.texts.push(text);
    } else {
      this.flush();
      this.#chunks = { update, texts: [text] };
      const wait = this.#flushedAt + this.#flushMs - performance.now();
      if (wait <= 0) this.flush();
      else this.#timer = setTimeout(() => this.flush(), wait);
    }
    await this.#lease.room();
  }

  flush(): void {
    if (this.#timer) clearTimeout(this.#timer);
    this.#timer = null;
    if (this.#chunks === null) return;
    const { update, texts } = this.#chunks;
    this.#chunks = null;
    this.#flushedAt = performance.now();
    this.#store(
      texts.length === 1 ? update : ({ ...update, content: { ...contentOf(update), text: texts.join('') } } as Update),
    );
  }

  #store(update: Update): void {
    const event = { kind: 'turn.update', turn: this.#turn, payload: { acp: UPDATE_VERSION, update } } as const;
    // A failure aborts the lease, which ends the turn; it needs no second report here.
    this.#lease.write({ write: 'event', event }).catch(() => {});
  }
}

function joinable(update: Update): boolean {
  return update.sessionUpdate === 'agent_message_chunk' || update.sessionUpdate === 'agent_thought_chunk';
}

/** Whether nothing is lost when the text of one is put behind that of the other. */
function sameStream(a: Update, b: Update): boolean {
  return (
    a.sessionUpdate === b.sessionUpdate && (isPlain(a) && isPlain(b) ? idOf(a) === idOf(b) : frameOf(a) === frameOf(b))
  );
}

/** Whether a chunk is made of its text and the id of its message alone, as nearly all are. */
function isPlain(update: Update): boolean {
  return (
    Object.keys(contentOf(update)).length === 2 && Object.keys(update).length === (idOf(update) === undefined ? 2 : 3)
  );
}

function contentOf(update: Update): object {
  return (update as { content: object }).content;
}

function idOf(update: Update): unknown {
  return (update as { messageId?: unknown }).messageId;
}

/** All of a chunk but its text. */
function frameOf(update: Update): string {
  return JSON.stringify({ ...update, content: { ...contentOf(update), text: '' } });
}
