import type { Defect } from './defects.ts';
import { blocksOf, type Entry, isMessage } from './entries.ts';

interface Call {
  readonly line: number;
  readonly uuid: string | null;
  /** Whether anything but results came after it: then Claude will not answer for it any more. */
  passed: boolean;
}

/** Calls of tools that have no result (yet). */
export class OpenCalls {
  readonly #calls = new Map<string, Call>();
  /** One answer of the model is several entries: one for each of its blocks. */
  #answer: string | undefined;

  add(entry: Entry, line: number): void {
    if (!isMessage(entry)) return;
    const blocks = blocksOf(entry.message);
    for (const block of blocks) {
      if (block.type === 'tool_result' && typeof block.tool_use_id === 'string') this.#calls.delete(block.tool_use_id);
    }
    if (this.#goesOn(entry)) for (const call of this.#calls.values()) call.passed = true;
    for (const block of blocks) {
      if (block.type !== 'tool_use' || typeof block.id !== 'string') continue;
      this.#calls.set(block.id, { line, uuid: entry.uuid ?? null, passed: false });
    }
  }

  defects(): Defect[] {
    return [...this.#calls.values()].map(({ line, uuid, passed }) => {
      return { kind: passed ? 'dangling_tool' : 'open_tool', line, uuid };
    });
  }

  #goesOn({ type, isMeta, message }: Entry): boolean {
    if (type === 'user') return isMeta !== true && blocksOf(message).some((block) => block.type !== 'tool_result');
    const same = message?.id !== undefined && message.id === this.#answer;
    this.#answer = message?.id;
    return !same;
  }
}
