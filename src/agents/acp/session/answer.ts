import { chunkText, RETRACTED, type Update } from '../../../core/turn/update.ts';

interface Piece {
  readonly chunk: Update;
  readonly kind: string;
  /** Undefined: its agent gives none. */
  readonly id: string | undefined;
  readonly text: string;
  /** It stays part of the answer, whatever breaks later. */
  final: boolean;
}

/**
 * What an agent streams in a turn. When the connection to its model breaks, the agent asks the model again, and the answer starts
 * over. What was streamed before does not count then. Three things show that:
 *
 *   the agent says so     `retried`: the message that it was streaming is retracted
 *   its message ids do    a message directly follows another one and begins with all of its text: the other one is retracted
 *   its record does       the record has only the end of what was streamed under one id: the rest is retracted (`recorded`)
 *
 * What came before a tool call is final. So is what the agent reports as final (`finished`).
 */
export class Answer {
  /** Of the last message, and whatever else is not final. */
  #pieces: Piece[] = [];
  /** An earlier message that the current one may repeat, and how many of its characters it has repeated; null: none. */
  #original: { readonly id: string; readonly text: string; repeated: number } | null = null;

  /** By message id: all of its text in this turn. */
  readonly texts = new Map<string, string>();

  begin(): void {
    this.#pieces = [];
    this.texts.clear();
    this.#original = null;
  }

  /** Takes an update of the turn. Returns the retraction of what no longer counts. */
  see(update: Update): Update[] {
    const text = chunkText(update);
    if (update.sessionUpdate !== 'agent_message_chunk' && update.sessionUpdate !== 'agent_thought_chunk') {
      if (update.sessionUpdate === 'tool_call' || update.sessionUpdate === 'tool_call_update') this.finished();
      return [];
    }
    if (text === null || text === '') return [];
    const { sessionUpdate: kind, messageId: id } = update;
    const before = this.#pieces.at(-1);
    if (before !== undefined && before.id !== id) this.#compareWith(before, kind, id);
    this.#pieces.push({ chunk: update, kind, id, text, final: false });
    if (id !== undefined && kind === 'agent_message_chunk') this.texts.set(id, (this.texts.get(id) ?? '') + text);
    return this.#compared(text);
  }

  /** What was streamed so far is final. */
  finished(): void {
    const last = this.#pieces.at(-1)?.id;
    // Earlier messages are not compared again.
    this.#pieces = this.#pieces.filter(({ id }) => id === last);
    for (const piece of this.#pieces) piece.final = true;
    this.#original = null;
  }

  /** The agent asks its model again. Returns the retraction of the unfinished message, followed by what was final of it. */
  retried(): Update[] {
    const last = this.#pieces.at(-1);
    if (last === undefined || last.final) return [];
    const { id } = last;
    // Without ids, everything since the last tool is retracted, and nothing of that is final.
    const kept = id === undefined ? [] : this.#pieces.filter((piece) => piece.id === id && piece.final);
    this.#forget(id);
    this.#pieces.push(...kept);
    return [retraction(id), ...kept.map(({ chunk }) => chunk)];
  }

  /** The turn has completed. Returns the retraction of what the agent's own record does not have. */
  recorded(record: ReadonlyMap<string, string>): Update[] {
    return [...this.texts].flatMap(([messageId, text]) => {
      const kept = record.get(messageId) ?? '';
      if (kept === '' || kept.length === text.length || !text.endsWith(kept)) return [];
      return [{ sessionUpdate: RETRACTED, messageId, characters: text.length - kept.length } as Update];
    });
  }

  #compareWith(before: Piece, kind: string, id: string | undefined): void {
    const comparable = before.kind === kind && !before.final && before.id !== undefined && id !== undefined;
    this.#original = comparable ? { id: before.id as string, text: this.#textOf(before.id), repeated: 0 } : null;
    // The message may have begun before the other one.
    const begun = comparable ? this.#textOf(id) : '';
    if (begun !== '') this.#repeats(begun);
  }

  /** Whether this text repeats the next part of the original. Each text is compared once: a message may have many. */
  #repeats(text: string): boolean {
    const original = this.#original;
    if (original === null) return false;
    const rest = original.text.slice(original.repeated, original.repeated + text.length);
    original.repeated += rest.length;
    if (text.startsWith(rest)) return true;
    this.#original = null;
    return false;
  }

  #compared(text: string): Update[] {
    const original = this.#original;
    if (original === null || !this.#repeats(text) || original.repeated < original.text.length) return [];
    this.#original = null;
    this.#forget(original.id);
    return [retraction(original.id)];
  }

  #textOf(id: string | undefined): string {
    return this.#pieces
      .filter((piece) => piece.id === id)
      .map(({ text }) => text)
      .join('');
  }

  #forget(id: string | undefined): void {
    this.#pieces = this.#pieces.filter((piece) => piece.id !== id);
  }
}

function retraction(id: string | undefined): Update {
  return { sessionUpdate: RETRACTED, messageId: id ?? null };
}
