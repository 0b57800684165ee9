import { wellFormed } from '../../core/input/well-formed.ts';
import { PartsBuilder } from '../../core/turn/record.ts';
import { chunkText, UPDATE_VERSION, type Update } from '../../core/turn/update.ts';
import type { Lease } from '../../leases/lease.ts';
import type { Clock } from '../../ports/clock.ts';

/**
 * Stores what an agent does. Chunks of text are joined, and stored at most `flushMs` after the first of them; everything else is stored at
 * once. The first chunk after a pause does not wait, so that text appears at once.
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
  /** The last code unit of the last chunk, if it is a high surrogate: the low one may come with the next chunk. */
  #highSurrogate: Update | null = null;
  /** The agent has done something that a record does not contain. */
  #acted = false;

  constructor(lease: Lease, turn: string, clock: Clock, flushMs: number) {
    this.#lease = lease;
    this.#turn = turn;
    this.#clock = clock;
    this.#flushMs = flushMs;
  }

  /** Resolves when the next update may be added, not when this one is durable. */
  async add(update: Update): Promise<void> {
    for (const one of this.#inWholeCharacters(update)) this.#add(one);
    await this.#lease.ready();
  }

  /** Whether the agent has said or done anything that is still part of the turn. Thoughts alone are no answer. */
  get answered(): boolean {
    return (
      this.#acted ||
      this.parts.parts().some((part) => part.type === 'tool' || (part.type === 'text' && part.text.trim() !== ''))
    );
  }

  /** No more updates come: stores the rest. */
  end(): void {
    if (this.#highSurrogate !== null) this.#add(this.#highSurrogate);
    this.#highSurrogate = null;
    this.flush();
  }

  /** Some agents split their text between the two surrogates of a character. */
  #inWholeCharacters(update: Update): Update[] {
    const before = this.#highSurrogate;
    this.#highSurrogate = null;
    const text = joinable(update) ? chunkText(update) : null;
    const goesOn = text !== null && before !== null && sameStream(before, update);
    const whole = goesOn ? (chunkText(before) ?? '') + text : text;
    const updates = before !== null && !goesOn ? [before] : [];
    if (whole === null || !HIGH_SURROGATE.test(whole.slice(-1)))
      return [...updates, goesOn ? withText(update, whole ?? '') : update];
    this.#highSurrogate = withText(update, whole.slice(-1));
    return whole.length === 1 ? updates : [...updates, withText(update, whole.slice(0, -1))];
  }

  #add(given: Update): void {
    const update = wellFormed(given);
    this.parts.add(update, this.#clock.monotonic());
    this.#acted ||= isAct(update);
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
  }

  flush(): void {
    if (this.#timer) clearTimeout(this.#timer);
    this.#timer = null;
    if (this.#chunks === null) return;
    const { update, texts } = this.#chunks;
    this.#chunks = null;
    this.#flushedAt = this.#clock.monotonic();
    this.#store(texts.length === 1 ? update : withText(update, texts.join('')));
  }

  #store(update: Update): void {
    const event = { kind: 'turn.update', turn: this.#turn, payload: { acp: UPDATE_VERSION, update } } as const;
    this.#lease.say({ write: 'event', event });
  }
}

const HIGH_SURROGATE = /[\ud800-\udbff]/;

function withText(chunk: Update, text: string): Update {
  return { ...chunk, content: { ...contentOf(chunk), text } } as Update;
}

/** An answer that a record does not show: an image, a plan, a compaction. */
function isAct(update: Update): boolean {
  const { sessionUpdate } = update;
  if (sessionUpdate === 'agent_message_chunk') return chunkText(update) === null;
  return sessionUpdate === 'plan' || sessionUpdate === 'compaction_update';
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
  return JSON.stringify(withText(update, ''));
}
