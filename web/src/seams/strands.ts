import type { Receipt } from 'throughline/client';
import { endedIn } from '../data/conversation/reads.ts';
import type { ConversationState } from '../data/conversation/state.ts';
import { useConversation } from '../data/conversation/use-conversation.ts';
import { type LineEnd, lineAfter, lineTurnOf, NO_LINE } from './line.ts';

type Known = Pick<ConversationState, 'outline' | 'turns' | 'receipts' | 'last'>;
type Outline = NonNullable<Known['outline']>;

/** Computed once for each outline: after each turn that has ended, from turn 1. */
const outlined = new WeakMap<Outline, readonly LineEnd[]>();
/** Computed once for each state: after each turn that is loaded and not in the outline. */
const loaded = new WeakMap<Known, ReadonlyMap<number, LineEnd>>();

/** How far the line has come after turn `n`; null: not known yet. Beyond the last turn: with the warm-ups after it. */
export function lineEndIn(state: Known, n: number): LineEnd | null {
  if (n <= 0) return NO_LINE;
  const ended = state.outline === null ? [] : endsOf(state.outline);
  return ended[n - 1] ?? endsLoaded(state, ended).get(n) ?? null;
}

function endsOf(outline: Outline): readonly LineEnd[] {
  const known = outlined.get(outline);
  if (known !== undefined) return known;
  let end = NO_LINE;
  const ends = endedIn(outline).map((turn) => {
    end = lineAfter(end, turn);
    return end;
  });
  outlined.set(outline, ends);
  return ends;
}

function endsLoaded(state: Known, ended: readonly LineEnd[]): ReadonlyMap<number, LineEnd> {
  const known = loaded.get(state);
  if (known !== undefined) return known;
  const ends = new Map<number, LineEnd>();
  let end = ended.at(-1) ?? NO_LINE;
  for (let n = ended.length + 1; n <= state.last + 1; n += 1) {
    const turn = state.turns.get(n)?.turn;
    if (turn === undefined && n <= state.last) break;
    const receipts = receiptsFor(state, n);
    const next = turn ?? { n, agent: receipts.at(-1)?.agent ?? '', imported: false, sent: null };
    end = lineAfter(end, lineTurnOf(next, receipts));
    ends.set(n, end);
  }
  loaded.set(state, ends);
  return ends;
}

/** The receipts of the warm-ups before turn `n`, and of its attempts. */
export function receiptsFor({ receipts }: Pick<Known, 'receipts'>, n: number): readonly Receipt[] {
  const warmUps = (receipts.get(n - 1) ?? []).filter(({ turn }) => turn === null);
  return [...warmUps, ...(receipts.get(n) ?? []).filter(({ turn }) => turn !== null)];
}

/** The number of the strand that turn `n` is on; null: not known yet; 0: there is no line yet. */
export function useStrand(n: number): number | null {
  return useConversation((state) => lineEndIn(state, n)?.strand ?? null);
}
