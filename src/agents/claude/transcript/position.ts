import type { SentPrompt } from '../../../ports/agent.ts';
import { type Chain, leafOf, positionOf } from './chain.ts';
import { blocksOf, type Entry, isLink } from './entries.ts';
import { TranscriptReader } from './reader.ts';

/** Where a session stands that nobody has open. */
export interface ColdPosition {
  readonly position: string | null;
  /** Says whether all of the file would reach the model. */
  readonly chain: Chain;
}

/** Walks all of a transcript. Null: there is no such file. */
export async function readPosition(file: string): Promise<ColdPosition | null> {
  const reader = await new TranscriptReader(file, Number.POSITIVE_INFINITY).skip();
  if (!reader.present) return null;
  return { position: positionOf(reader.chain), chain: reader.chain };
}

/** What follows from a prompt in a transcript. */
export interface EntriesFrom {
  /** In the order of the file, the prompt left out. */
  readonly entries: readonly Entry[];
  /**
   * Where the session stands by what follows from the prompt; null: nowhere. When somebody else has gone on from there, this is
   * not where the file stands, and whoever resumes it will see that.
   */
  readonly position: string | null;
}

/**
 * Without a prompt: what has come after the position by itself. Of a prompt that is not in the file there are no entries. The
 * result is null when there is no file.
 */
export async function entriesFrom(file: string, { prompt, position }: SentPrompt): Promise<EntriesFrom | null> {
  const reader = new TranscriptReader(file, Number.POSITIVE_INFINITY);
  const from = prompt ?? (position === null ? null : leafOf(position));
  const following = from === null ? null : new Following(from);
  const entries: Entry[] = [];
  let lastWord: Entry | null = null;
  for await (const growth of reader.read()) {
    entries.push(...growth.entries.filter((entry) => following?.add(entry)));
    lastWord = growth.entries.findLast((entry) => isLink(entry) || entry.type === 'last-prompt') ?? lastWord;
  }
  if (!reader.present) return null;
  const { leaf } = reader.chain;
  const last = following?.last ?? null;
  // Gone back to there for a prompt that never came (`goBack`): the file ends with the one before it, and nobody else was here.
  const wentBack = last === null && position !== null && notes(lastWord) === leafOf(position);
  const ours = wentBack || reader.position === position || (leaf !== null && following?.has(leaf) === true);
  if (ours) return { entries, position: reader.position };
  return { entries, position: last === null ? position : reader.positionAt(last) };
}

/** The leaf that an entry notes; null: it notes none. */
function notes(entry: Entry | null): unknown {
  return entry?.type === 'last-prompt' ? entry.leafUuid : null;
}

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
