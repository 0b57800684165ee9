import { isObject } from '../../../core/content.ts';
import type { Update } from '../../../core/update.ts';

/** Of calls whose terminals nobody made, and of terminals that no call shows, only the newest are kept. */
const MOST = 100;

/**
 * A tool call may show a terminal instead of text, and a terminal is gone when it is released. What it showed is told once more
 * as text, as an update of ours: the agent's own stays as it came.
 */
export class TerminalTexts {
  /** The content of a tool call that shows terminals, by the id of the call. */
  readonly #shown = new Map<string, readonly unknown[]>();
  readonly #texts = new Map<string, string>();

  /** Looks whether an update shows a terminal. */
  see(update: Update): void {
    const { toolCallId, content } = update as { toolCallId?: unknown; content?: unknown };
    if (typeof toolCallId !== 'string' || !Array.isArray(content)) return;
    if (content.some((item) => terminalOf(item) !== null)) setNewest(this.#shown, toolCallId, content);
  }

  released(terminalId: string, text: string): void {
    setNewest(this.#texts, terminalId, text);
  }

  /** One update for each tool call whose terminals have all been released. */
  *taken(): Generator<Update> {
    yield* this.#tell((id) => this.#texts.get(id) ?? null);
  }

  /** The turn ends: what has not been released yet is told as it stands. */
  *rest(textOf: (terminalId: string) => string | null): Generator<Update> {
    yield* this.#tell((id) => this.#texts.get(id) ?? textOf(id));
    this.#shown.clear();
    this.#texts.clear();
  }

  *#tell(textOf: (terminalId: string) => string | null): Generator<Update> {
    for (const [toolCallId, content] of this.#shown) {
      const ids = [...new Set(content.map(terminalOf).filter((id) => id !== null))];
      const texts = new Map(ids.map((id) => [id, textOf(id)]));
      if ([...texts.values()].includes(null)) continue;
      this.#shown.delete(toolCallId);
      yield {
        sessionUpdate: 'tool_call_update',
        toolCallId,
        content: onlyOnce(content).map((item) => asText(item, texts)),
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

/** What is shown twice is told once: a short update could stand for any amount of text. */
function onlyOnce(content: readonly unknown[]): unknown[] {
  const shown = new Set<string>();
  return content.filter((item) => {
    const id = terminalOf(item);
    const again = id !== null && shown.has(id);
    if (id !== null) shown.add(id);
    return !again;
  });
}

function asText(item: unknown, texts: ReadonlyMap<string, string | null>): unknown {
  const id = terminalOf(item);
  return id === null ? item : { type: 'content', content: { type: 'text', text: texts.get(id) ?? '' } };
}
