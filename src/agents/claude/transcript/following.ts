import { blocksOf, type Entry, isLink } from './entries.ts';

/**
 * What follows from one entry of a transcript: its descendants, up to where somebody else's prompt goes on below. Fed with
 * the entries in the order of the file.
 *
 * 2.1.325 marks all that is said to the model within a turn by the `promptId` of its prompt: also the results of tools, and
 * the notice that it was interrupted. What another process puts after a turn that broke off, before its own prompt, has the
 * `promptId` of that prompt. Where there is no such mark (1.0.128), only a prompt shows that somebody else goes on.
 */
export class Following {
  readonly #from: string;
  readonly #uuids: Set<string>;
  /** Claude's marks of the prompts that are ours, or its own. */
  readonly #marks = new Set<string>();
  #last: string | null = null;

  constructor(from: string) {
    this.#from = from;
    this.#uuids = new Set([from]);
  }

  /** Whether the entry follows; the one that all begins with does not. */
  add(entry: Entry): boolean {
    if (entry.uuid === this.#from) {
      this.#last ??= entry.uuid;
      if (typeof entry.promptId === 'string') this.#marks.add(entry.promptId);
      return false;
    }
    const parent = entry.parentUuid ?? entry.logicalParentUuid;
    if (typeof parent !== 'string' || !this.#uuids.has(parent) || this.#isAnothers(entry)) return false;
    if (typeof entry.uuid === 'string') this.#uuids.add(entry.uuid);
    if (isLink(entry)) this.#last = entry.uuid;
    return true;
  }

  /** Whether it is the entry that all begins with, or follows from it. */
  has(uuid: string): boolean {
    return this.#uuids.has(uuid);
  }

  /** The last of the chain so far; null: not even the first has been seen. */
  get last(): string | null {
    return this.#last;
  }

  #isAnothers(entry: Entry): boolean {
    if (entry.type !== 'user' || entry.isSidechain === true) return false;
    const { promptId, promptSource } = entry;
    // Claude woke up by itself: a task in the background has ended, for example.
    if (promptSource === 'system') {
      if (typeof promptId === 'string') this.#marks.add(promptId);
      return false;
    }
    if (typeof promptId === 'string' && this.#marks.size > 0) return !this.#marks.has(promptId);
    return isPrompt(entry);
  }
}

const NOTICE = /^\[Request interrupted by user(?: for tool use)?\]$/;

/** Whether a person said it, as far as an entry shows: no result of a tool, no word of Claude's own. */
function isPrompt({ message, isMeta, isCompactSummary }: Entry): boolean {
  if (isMeta === true || isCompactSummary === true) return false;
  return blocksOf(message).some(
    ({ type, text }) => type !== 'tool_result' && !(typeof text === 'string' && NOTICE.test(text)),
  );
}
