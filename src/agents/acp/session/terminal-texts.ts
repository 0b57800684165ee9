import { isObject } from '../../../core/turn/content.ts';
import type { Update } from '../../../core/turn/update.ts';

/** How many calls without their terminals, and terminals without their calls, are kept: the newest. */
const MOST = 100;

/**
 * A tool call may show a terminal instead of text, and the terminal is gone when it is released. So its text is sent again in an
 * update of ours. The agent's own update stays as it came.
 */
export class TerminalTexts {
  /** The content of a tool call that shows terminals, by the id of the call. */
  readonly #shown = new Map<string, readonly unknown[]>();
  readonly #texts = new Map<string, string>();

  /** Notes an update that shows a terminal. */
  see(update: Update): void {
    const { toolCallId, content } = update as { toolCallId?: unknown; content?: unknown };
    if (typeof toolCallId !== 'string' || !Array.isArray(content)) return;
    if (content.some((item) => terminalOf(item) !== null)) setNewest(this.#shown, toolCallId, content);
  }

  released(terminalId: string, text: string): void {
    setNewest(this.#texts, terminalId, text);
  }

  /** One update for each tool call whose terminals have all been released. */
  *complete(): Generator<Update> {
    yield* this.#asText((id) => this.#texts.get(id) ?? null);
  }

  /** The turn ends: sends the text so far of terminals that were not released. */
  *rest(textOf: (terminalId: string) => string | null): Generator<Update> {
    yield* this.#asText((id) => this.#texts.get(id) ?? textOf(id));
    this.#shown.clear();
    this.#texts.clear();
  }

  *#asText(textOf: (terminalId: string) => string | null): Generator<Update> {
    for (const [toolCallId, content] of this.#shown) {
      const ids = [...new Set(content.map(terminalOf).filter((id) => id !== null))];
      const texts = new Map(ids.map((id) => [id, textOf(id)]));
      if ([...texts.values()].includes(null)) continue;
      this.#shown.delete(toolCallId);
      const asText = content.flatMap((item) => {
        const id = terminalOf(item);
        if (id === null) return [item];
        const text = texts.get(id);
        // A terminal that is shown twice is sent once. Otherwise a short update could become any amount of text.
        return texts.delete(id) ? [{ type: 'content', content: { type: 'text', text } }] : [];
      });
      yield {
        sessionUpdate: 'tool_call_update',
        toolCallId,
        content: asText,
        _meta: { 'throughline/terminal': ids },
      } as Update;
    }
  }
}

function setNewest<T>(all: Map<string, T>, key: string, value: T): void {
  all.delete(key);
  all.set(key, value);
  const [oldest] = all.keys();
  if (all.size > MOST && oldest !== undefined) all.delete(oldest);
}

function terminalOf(item: unknown): string | null {
  return isObject(item) && item.type === 'terminal' && typeof item.terminalId === 'string' ? item.terminalId : null;
}
