import type { SentPrompt } from '../../../ports/agent.ts';
import { type Chain, leafOf, positionOf } from './chain.ts';
import { type Entry, isLink } from './entries.ts';
import { Following } from './following.ts';
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
