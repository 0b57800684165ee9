import type { Condensed } from '../turn/record.ts';

/*
 * An agent whose window is full replaces earlier turns by a summary of its own. Those turns are condensed: the session neither has them
 * word for word nor lacks them. `condensedTo` of a session is the last of them; all of its turns up to there are condensed.
 */

/** The last condensed turn after turn `n`; null: the agent condensed nothing in it. */
export function condensedTo(n: number, condensed: Condensed | null): number | null {
  if (condensed === null) return null;
  return condensed === 'turn' ? n : n - 1;
}

/**
 * The last condensed turn of a session that was opened again. `shown`: what the adapter read from the agent's own storage. A summary
 * that was made unseen may cover everything.
 */
export function condensedWhenOpened(
  known: { readonly condensedTo: number; readonly watermark: number },
  shown: boolean | number | undefined,
): number {
  if (shown === undefined) return known.condensedTo;
  if (typeof shown === 'number') return Math.max(known.condensedTo, shown);
  if (!shown) return 0;
  return known.condensedTo > 0 ? known.condensedTo : known.watermark;
}

/**
 * The last condensed turn of a session that is told the turns after its watermark. `dropped`: how many of them it is not told; `told`:
 * the first that it is told, or the one after all of them. A session stores how many turns it lacks, not which ones, and `turnCounts`
 * subtracts them from the condensed ones. So everything up to the last dropped turn counts as condensed.
 */
export function condensedWhenTold(
  known: { readonly condensedTo: number; readonly watermark: number },
  dropped: number,
  told: number,
): number {
  // Turns that it is told again are not condensed.
  const last = Math.min(known.condensedTo, known.watermark);
  return last > 0 && dropped > 0 ? told - 1 : last;
}

/** Every turn of the history is counted once. */
export interface TurnCounts {
  readonly carried: number;
  readonly condensed: number;
  readonly dropped: number;
}

/** `upTo`: how many turns the history has up to the last condensed one. The dropped ones among them were never told. */
export function turnCounts(history: number, dropped: number, upTo: number): TurnCounts {
  const condensed = Math.max(0, Math.min(upTo, history) - dropped);
  return { carried: history - dropped - condensed, condensed, dropped };
}

/** The same after a turn in which the agent condensed everything before it. */
export function allCondensed<T extends TurnCounts>(counts: T): T {
  return { ...counts, carried: 0, condensed: counts.carried + counts.condensed };
}
