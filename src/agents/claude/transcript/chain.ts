import { type Defect, losesContext } from './defects.ts';

/*
 * What Claude tells the model is the chain of `parentUuid` from a leaf back to a root, not the lines of the file: an entry
 * that the chain misses is lost without a word. A compaction is a valid root: the summary after it stands for what was before.
 *
 * The leaf is the last entry of the file, with one exception (seen with 2.1.325): Claude notes now and then, in a
 * line `last-prompt` which leaf it was at, and when the last entry does not descend from the newest such note, the note is
 * believed and not the file. So of two processes that went on from one session, either may be dropped.
 *
 * Tools that the model called at once fork the chain: each result hangs on its own call, and the answer on the last result.
 * Claude puts them together again by the id of the message, so all of them count as one place (`group`).
 */
export interface Chain {
  /** Where Claude would go on; null: nowhere, there is no entry. */
  readonly leaf: string | null;
  /** Entries from the leaf to the root, both included. */
  readonly count: number;
  /** Where the chain begins; null: it does not reach a root. */
  readonly root: 'start' | 'compaction' | null;
  readonly rootReached: boolean;
  /** What was found in the file, the first thousand. Also beside the chain: what is damaged once is not to be trusted. */
  readonly defects: readonly Defect[];
}

/** Where a session stands: how many entries its chain has, and which is the last. */
export function positionOf({ count, leaf }: Pick<Chain, 'count' | 'leaf'>): string | null {
  return leaf === null ? null : `${count}:${leaf}`;
}

/** The entry that a position names; null: it is no position. */
export function leafOf(position: string): string | null {
  return /^\d+:(.+)$/.exec(position)?.[1] ?? null;
}

/** Whether all of the chain reaches the model as it stands in the file. */
export function isWhole(chain: Chain): boolean {
  return chain.leaf !== null && chain.rootReached && !chain.defects.some(losesContext);
}
