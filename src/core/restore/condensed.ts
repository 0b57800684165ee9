import type { Condensed } from '../turn/record.ts';

/*
 * An agent whose window is full replaces what came before by a summary of its own. Those turns are condensed: the session neither has
 * them word for word nor lacks them. `condensedTo` of a session is the last of them; all of its turns up to there are condensed.
 */

/** The last condensed turn after turn `n`; null: the agent condensed nothing in it. */
export function condensedTo(n: number, condensed: Condensed | null): number | null {
  if (condensed === null) return null;
  return condensed === 'turn' ? n : n - 1;
}

/**
 * The last condensed turn of a session that was opened again. `shown`: what the agent's own storage shows, as the adapter reads it.
 * A summary that nobody saw being made may hold everything.
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
 * The last condensed turn of a session that is told of the turns after its watermark. `dropped`: how many of them it is not told;
 * `told`: the first that it is, or the one after all of them. A session only counts the turns that it lacks. So that none of these is
 * taken for one before the summary, all that it has up to the last of them counts as condensed.
 */
export function condensedWhenTold(
  known: { readonly condensedTo: number; readonly watermark: number },
  dropped: number,
  told: number,
): number {
  // What it is told anew is not condensed.
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
