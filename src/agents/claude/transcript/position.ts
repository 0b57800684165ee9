import type { SentPrompt } from '../../../ports/agent.ts';
import { leafOf } from './chain.ts';
import { blocksOf, type Entry, isLink, isMessage } from './entries.ts';
import type { Transcript } from './file.ts';
import { TranscriptReader } from './reader.ts';

/** What follows from a prompt in a transcript. */
interface EntriesFrom {
  /** In the order of the file, the prompt left out. */
  readonly entries: readonly Entry[];
  /**
   * The position by what follows from the prompt alone; null: none. When somebody else has continued from there, the position of
   * the file is another one, and the next resume will find that.
   */
  readonly position: string | null;
  /** The prompt directly follows the position that it was sent to; entries of Claude's own may be between. */
  readonly landed: boolean;
}

/**
 * Without a prompt: what was added after the position without one. A prompt that is not in the file has no entries. The result
 * is null when there is no file.
 */
export async function entriesFrom(file: Transcript, { prompt, position }: SentPrompt): Promise<EntriesFrom | null> {
  const reader = new TranscriptReader(file);
  const from = prompt ?? (position === null ? null : leafOf(position));
  const following = from === null ? null : new Following(from);
  const landing = new Landing(prompt, position);
  const entries: Entry[] = [];
  let lastWord: Entry | null = null;
  for await (const added of reader.read()) {
    for (const entry of added) landing.add(entry);
    entries.push(...added.filter((entry) => following?.add(entry)));
    lastWord = added.findLast((entry) => isLink(entry) || entry.type === 'last-prompt') ?? lastWord;
  }
  if (!reader.present) return null;
  const { leaf } = reader.chain;
  const last = following?.last ?? null;
  // Rewound for a prompt that was never sent (`prepareRewind`): the file ends with the failed one, and nobody else has used it.
  const rewound = last === null && position !== null && notedLeaf(lastWord) === leafOf(position);
  const ours = rewound || reader.position === position || (leaf !== null && following?.has(leaf) === true);
  const { landed } = landing;
  if (ours) return { entries, position: reader.position, landed };
  return { entries, position: last === null ? position : reader.index.positionAt(last), landed };
}

/** Whether the prompt follows the position, judged from the entries of a file in their order. */
class Landing {
  readonly #prompt: string | null;
  readonly #leaf: string | null;
  /** Entries that are not messages, each with its parent. */
  readonly #between = new Map<string, string | null>();
  landed = false;

  constructor(prompt: string | null, position: string | null) {
    this.#prompt = prompt;
    this.#leaf = position === null ? null : leafOf(position);
  }

  add(entry: Entry): void {
    if (!isLink(entry)) return;
    const { uuid, parentUuid = null } = entry;
    if (uuid === this.#prompt) this.landed = this.#skip(parentUuid) === this.#leaf;
    else if (!isMessage(entry)) this.#between.set(uuid, parentUuid);
  }

  /** Skips entries that are not messages, up to the leaf of the position, which may be such an entry. */
  #skip(from: string | null): string | null {
    let at = from;
    while (at !== null && at !== this.#leaf && this.#between.has(at)) at = this.#between.get(at) ?? null;
    return at;
  }
}

/** The leaf that an entry notes; null: not a note. */
function notedLeaf(entry: Entry | null): unknown {
  return entry?.type === 'last-prompt' ? entry.leafUuid : null;
}

/**
 * What follows from one entry of a transcript: its descendants, up to somebody else's prompt. Gets the entries in the order of
 * the file.
 *
 * 2.1.325 marks all that the model gets within a turn with the `promptId` of its prompt: also the results of tools, and the
 * notice of an interruption. What another process appends to a broken turn before its own prompt has the `promptId` of that
 * prompt. Without such a mark, only a prompt shows that somebody else continues.
 */
export class Following {
  readonly #from: string;
  readonly #uuids: Set<string>;
  /** The `promptId`s of our prompt, and of Claude's own. */
  readonly #marks = new Set<string>();
  /** The last of the chain so far; null: the first has not been seen. */
  last: string | null = null;

  constructor(from: string) {
    this.#from = from;
    this.#uuids = new Set([from]);
  }

  /** Adds an entry. True: it follows from the first one, and is not the first one itself. */
  add(entry: Entry): boolean {
    if (entry.uuid === this.#from) {
      this.last ??= entry.uuid;
      if (typeof entry.promptId === 'string') this.#marks.add(entry.promptId);
      return false;
    }
    const parent = entry.parentUuid ?? entry.logicalParentUuid;
    if (typeof parent !== 'string' || !this.#uuids.has(parent) || this.#isForeign(entry)) return false;
    if (typeof entry.uuid === 'string') this.#uuids.add(entry.uuid);
    if (isLink(entry)) this.last = entry.uuid;
    return true;
  }

  /** Whether it is the first entry, or follows from it. */
  has(uuid: string): boolean {
    return this.#uuids.has(uuid);
  }

  #isForeign(entry: Entry): boolean {
    if (entry.type !== 'user' || entry.isSidechain === true) return false;
    const { promptId, promptSource } = entry;
    // Claude continued by itself: a background task has ended, for example.
    if (promptSource === 'system') {
      if (typeof promptId === 'string') this.#marks.add(promptId);
      return false;
    }
    if (typeof promptId === 'string' && this.#marks.size > 0) return !this.#marks.has(promptId);
    return isPrompt(entry);
  }
}

const NOTICE = /^\[Request interrupted by user(?: for tool use)?\]$/;

/** Whether the entry notes that a prompt was stopped. */
export function isNotice({ type, message }: Entry): boolean {
  return type === 'user' && blocksOf(message).some(({ text }) => typeof text === 'string' && NOTICE.test(text));
}

/** Whether the entry is a prompt: not the result of a tool, and not written by Claude itself. */
export function isPrompt({ message, isMeta, isCompactSummary }: Entry): boolean {
  if (isMeta === true || isCompactSummary === true) return false;
  return blocksOf(message).some(
    ({ type, text }) => type !== 'tool_result' && !(typeof text === 'string' && NOTICE.test(text)),
  );
}
