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
 * What an agent streams in a turn. When the connection to its model breaks, the agent asks the model again, and the answer begins
 * anew. The beginning that was streamed does not count then:
 *
 *   the agent says so     `retried`: the message that it was streaming is retracted
 *   its message ids do    a message directly follows another one and begins with all of its text: the other one is retracted
 *   its record does       the record has only the end of what was streamed under one id: the rest is retracted (`recorded`)
 *
 * What came before a tool call is final, and so is what the agent says is (`finished`).
 */
export class Answer {
  /** Of the last message, and whatever else is not final. */
  #pieces: Piece[] = [];
  /** A message that the next one may turn out to repeat, and how much of it that one has repeated; null: none. */
  #rival: { readonly id: string; readonly text: string; repeated: number } | null = null;

  /** By message id: all of its text in this turn. */
  readonly texts = new Map<string, string>();

  begin(): void {
    this.#pieces = [];
    this.texts.clear();
    this.#rival = null;
  }

  /** A part of the turn. Returns what does not count any more. */
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
    // Earlier messages are not looked at again.
    this.#pieces = this.#pieces.filter(({ id }) => id === last);
    for (const piece of this.#pieces) piece.final = true;
    this.#rival = null;
  }

  /** The agent asks its model again. Returns the retraction of the unfinished message, and again what was final of it. */
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

  /** The turn has completed. Returns what does not count, because the agent's own record does not have it. */
  recorded(record: ReadonlyMap<string, string>): Update[] {
    return [...this.texts].flatMap(([messageId, text]) => {
      const kept = record.get(messageId) ?? '';
      if (kept === '' || kept.length === text.length || !text.endsWith(kept)) return [];
      return [{ sessionUpdate: RETRACTED, messageId, characters: text.length - kept.length } as Update];
    });
  }

  #compareWith(before: Piece, kind: string, id: string | undefined): void {
    const comparable = before.kind === kind && !before.final && before.id !== undefined && id !== undefined;
    this.#rival = comparable ? { id: before.id as string, text: this.#textOf(before.id), repeated: 0 } : null;
    // The message may have begun before the other one.
    const begun = comparable ? this.#textOf(id) : '';
    if (begun !== '') this.#repeats(begun);
  }

  /** Whether this goes on as the other message does. Every text is looked at once: a message may have many. */
  #repeats(text: string): boolean {
    const rival = this.#rival;
    if (rival === null) return false;
    const rest = rival.text.slice(rival.repeated, rival.repeated + text.length);
    rival.repeated += rest.length;
    if (text.startsWith(rest)) return true;
    this.#rival = null;
    return false;
  }

  #compared(text: string): Update[] {
    const rival = this.#rival;
    if (rival === null || !this.#repeats(text) || rival.repeated < rival.text.length) return [];
    this.#rival = null;
    this.#forget(rival.id);
    return [retraction(rival.id)];
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
