import type { PublicEvent } from '../public/event.ts';
import { PartsBuilder, replyText } from './record.ts';
import { chunkText, RETRACTED, type Update } from './update.ts';

/**
 * The reply of a turn while it arrives: the whole text so far (`text`), and what to append to what is shown.
 *
 * An agent may retract text that was shown already, when the connection to its model broke and it asks the model again. Text that
 * then comes again is not shown twice. Text that differs begins a new paragraph, because shown text cannot be removed. `text` is
 * always correct: it is what `replyText` makes of the record afterwards.
 */
export class ReplyStream {
  #parts = new PartsBuilder();
  #text = '';
  /** Something else came after the last text: the next one is a new paragraph. */
  #apart = false;
  readonly #tools = new Set<string>();
  /** Where the text of each message begins; by null, that without an id since the last tool. */
  readonly #begins = new Map<unknown, number>();
  /** The shown text, if the reply does not begin with it: text was retracted. Null: the reply begins with the shown text. */
  #shown: string | null = null;
  /** From where on `#text` replaces what was shown. */
  #from = 0;

  get text(): string {
    return this.#text;
  }

  /** What the event adds to what is shown. */
  see(event: PublicEvent): string {
    switch (event.kind) {
      case 'turn.update':
        return this.add(event.payload.update);
      case 'turn.retrying':
        return this.restart();
      case 'turn.ended':
        return this.end(event.payload.reply);
      default:
        return '';
    }
  }

  add(update: Update): string {
    this.#parts.add(update);
    switch (update.sessionUpdate) {
      case 'agent_message_chunk':
        return this.#append(chunkText(update) ?? '', (update as { messageId?: unknown }).messageId ?? null);
      case 'agent_thought_chunk':
        if (chunkText(update)) this.#apart = true;
        return '';
      case 'tool_call':
      case 'tool_call_update':
        this.#tool(update.toolCallId);
        return '';
      case RETRACTED:
        return this.#retracted((update as { messageId?: unknown }).messageId);
      default:
        return '';
    }
  }

  /** The attempt failed, and its reply does not count. The next attempt begins. */
  restart(): string {
    this.#parts = new PartsBuilder();
    this.#tools.clear();
    this.#begins.clear();
    this.#apart = false;
    return this.#becomes('', 0);
  }

  /** The turn has ended with this reply. It may be longer than what was streamed: the rest was read from the agent's own storage. */
  end(reply: string): string {
    if (reply === this.#text) return '';
    const same = sameLength(reply, this.#text);
    const paragraph = reply.lastIndexOf(BREAK, same - BREAK.length);
    return this.#becomes(reply, paragraph === -1 ? 0 : paragraph + BREAK.length);
  }

  #append(text: string, messageId: unknown): string {
    if (text === '') return '';
    const added = this.#apart && this.#text !== '' ? BREAK + text : text;
    this.#apart = false;
    this.#text += added;
    if (!this.#begins.has(messageId)) this.#begins.set(messageId, this.#text.length - text.length);
    return this.#shown === null ? added : this.#catchUp();
  }

  #tool(id: unknown): void {
    if (typeof id !== 'string' || this.#tools.has(id)) return;
    this.#tools.add(id);
    this.#apart = true;
    this.#begins.delete(null);
  }

  #retracted(messageId: unknown): string {
    const parts = this.#parts.parts();
    const text = replyText(parts);
    this.#apart = parts.length > 0 && parts.at(-1)?.type !== 'text';
    if (text === this.#text) return '';
    const from = Math.min(this.#begins.get(messageId) ?? 0, text.length);
    this.#begins.delete(messageId);
    const shorter = this.#text.length - text.length;
    for (const [id, begin] of this.#begins) if (begin > from) this.#begins.set(id, Math.max(from, begin - shorter));
    return this.#becomes(text, from);
  }

  /** The reply is now `text`, which differs from index `from` on. */
  #becomes(text: string, from: number): string {
    this.#from = this.#shown === null ? from : Math.min(from, this.#from);
    this.#shown ??= this.#text;
    this.#text = text;
    return this.#catchUp();
  }

  /** Retracted text may come again: nothing is shown until it differs from what is shown, or is longer. */
  #catchUp(): string {
    const shown = this.#shown ?? this.#text;
    const [text, from] = [this.#text, this.#from];
    if (!text.startsWith(shown) && shown.startsWith(text)) return '';
    this.#shown = null;
    if (text.startsWith(shown)) return text.slice(shown.length);
    return text.startsWith(BREAK, from) ? text.slice(from) : BREAK + text.slice(from);
  }
}

/** Between paragraphs, as `replyText` has it. */
const BREAK = '\n\n';

/** The length of the common beginning of two texts. */
function sameLength(one: string, other: string): number {
  const most = Math.min(one.length, other.length);
  let same = 0;
  while (same < most && one[same] === other[same]) same += 1;
  return same;
}
