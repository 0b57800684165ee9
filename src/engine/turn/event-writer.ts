import { PartsBuilder } from '../../core/turn/record.ts';
import { chunkText, UPDATE_VERSION, type Update } from '../../core/turn/update.ts';
import type { Lease } from '../../leases/lease.ts';
import type { Clock } from '../../ports/clock.ts';

/**
 * Stores what an agent does. Chunks of text are joined and stored at the latest `flushMs` after the first of them; all else
 * is stored at once. The first chunk after a pause does not wait, so that text appears at once.
 */
export class EventWriter {
  readonly parts = new PartsBuilder();
  readonly #lease: Lease;
  readonly #turn: string;
  readonly #flushMs: number;
  readonly #clock: Clock;
  #chunks: { update: Update; texts: string[] } | null = null;
  #timer: NodeJS.Timeout | null = null;
  #flushedAt = Number.NEGATIVE_INFINITY;

  constructor(lease: Lease, turn: string, clock: Clock, flushMs: number) {
    this.#lease = lease;
    this.#turn = turn;
    this.#clock = clock;
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
      const wait = this.#flushedAt + this.#flushMs - this.#clock.monotonic();
      if (wait <= 0) this.flush();
      else this.#timer = setTimeout(() => this.flush(), wait);
    }
    await this.#lease.ready();
  }

  flush(): void {
    if (this.#timer) clearTimeout(this.#timer);
    this.#timer = null;
    if (this.#chunks === null) return;
    const { update, texts } = this.#chunks;
    this.#chunks = null;
    this.#flushedAt = this.#clock.monotonic();
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

/** Whether two chunks can be joined without losing anything. */
function sameStream(a: Update, b: Update): boolean {
  if (a.sessionUpdate !== b.sessionUpdate || idOf(a) !== idOf(b)) return false;
  return (isPlain(a) && isPlain(b)) || frameOf(a) === frameOf(b);
}

/** Whether a chunk has only a text and the id of its message. Nearly all do, so this check allocates nothing. */
function isPlain(update: Update): boolean {
  for (const field in update)
    if (field !== 'sessionUpdate' && field !== 'content' && field !== 'messageId') return false;
  for (const field in contentOf(update)) if (field !== 'type' && field !== 'text') return false;
  return true;
}

function contentOf(update: Update): object {
  return (update as { content: object }).content;
}

function idOf(update: Update): unknown {
  return (update as { messageId?: unknown }).messageId;
}

/** Everything of a chunk except its text. */
function frameOf(update: Update): string {
  return JSON.stringify({ ...update, content: { ...contentOf(update), text: '' } });
}
