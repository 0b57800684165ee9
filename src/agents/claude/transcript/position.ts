import { type Chain, isWhole, leafOf, positionOf } from './chain.ts';
import type { Entry } from './entries.ts';
import { TranscriptReader } from './reader.ts';

/** Where a session stands that nobody has open. */
export type ColdPosition =
  | { readonly whole: true; readonly position: string; readonly chain: Chain }
  /** The model would be told less than the file holds; the chain says why. */
  | { readonly whole: false; readonly position: string | null; readonly chain: Chain };

/** Walks all of a transcript, which proves that its chain is whole. Null: there is no such file. */
export async function readPosition(file: string): Promise<ColdPosition | null> {
  const reader = await new TranscriptReader(file, Number.POSITIVE_INFINITY).skip();
  if (!reader.present) return null;
  const { chain } = reader;
  const position = positionOf(chain);
  return isWhole(chain) && position !== null ? { whole: true, position, chain } : { whole: false, position, chain };
}

/** What a transcript holds after a position. */
export interface EntriesAfter {
  readonly entries: readonly Entry[];
  /** Where it stands now. */
  readonly position: string | null;
  readonly chain: Chain;
}

/** `position` null: from the beginning. The result is null when there is no file, or the position is not in it. */
export async function entriesAfter(file: string, position: string | null): Promise<EntriesAfter | null> {
  const reader = new TranscriptReader(file, Number.POSITIVE_INFINITY);
  const leaf = position === null ? null : leafOf(position);
  let passed = position === null;
  const entries: Entry[] = [];
  for await (const growth of reader.read()) {
    for (const entry of growth.entries) {
      if (passed) entries.push(entry);
      else passed = leaf !== null && entry.uuid === leaf;
    }
  }
  if (!reader.present || !passed) return null;
  // The same entry at another depth: what came before it is no longer what it was.
  if (leaf !== null && reader.positionAt(leaf) !== position) return null;
  return { entries, position: reader.position, chain: reader.chain };
}
