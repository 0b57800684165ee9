import { chunkText, RETRACTED, type Update } from '../../../../core/turn/update.ts';

/**
 * Builds the answer from updates as they arrive, exactly as `replyText` does from the record afterwards: texts with something
 * else between them are separate paragraphs.
 */
export class ReplyStream {
  #text = '';
  #apart = false;
  readonly #tools = new Set<string>();

  /** What the update adds to the answer. */
  add(update: Update): string {
    switch (update.sessionUpdate) {
      case 'agent_message_chunk':
        return this.#append(chunkText(update) ?? '');
      case 'agent_thought_chunk':
        if (chunkText(update)) this.#apart = true;
        return '';
      case 'tool_call':
      case 'tool_call_update':
        if (typeof update.toolCallId === 'string' && !this.#tools.has(update.toolCallId)) {
          this.#tools.add(update.toolCallId);
          this.#apart = true;
        }
        return '';
      case RETRACTED:
        // The retracted text is already on the screen, so its replacement starts a new paragraph.
        this.#apart = true;
        return '';
      default:
        return '';
    }
  }

  /** The part of a finished answer that we have not seen: found in the agent's own storage after its stream was lost. */
  rest(reply: string): string {
    return reply.startsWith(this.#text) ? this.#append(reply.slice(this.#text.length), false) : '';
  }

  #append(text: string, apart = this.#apart): string {
    if (text === '') return '';
    const added = apart && this.#text !== '' ? `\n\n${text}` : text;
    this.#apart = false;
    this.#text += added;
    return added;
  }
}
