import type { Receipt, Turn } from 'throughline/client';

/** What a session has of a turn: nothing, the agent's own summary, its text, or its text as it was told before the prompt. */
export type Share = 'dropped' | 'condensed' | 'carried' | 'told';

/** Consecutive turns with the same share. */
interface Stretch {
  readonly share: Share;
  readonly from: number;
  readonly to: number;
}

type Counts = Pick<Receipt, 'carried' | 'condensed' | 'dropped' | 'rung'>;

/**
 * The turns before turn `n`, from the first to the last. A budget drops the oldest turns, and an agent condenses the oldest of the rest.
 * `delivered`: the turns that were told, as recorded when the prompt was sent.
 */
export function stretchesOf(n: number, counts: Counts, delivered: NonNullable<Turn['sent']>['delivered']): Stretch[] {
  const last = n - 1;
  // A new session has nothing but what it was told.
  const isNew = counts.rung === 'transcript' && delivered !== null;
  const dropped = Math.min(last, isNew ? delivered.from - 1 : counts.dropped);
  const condensed = Math.min(last, dropped + counts.condensed);
  const told = delivered === null ? last + 1 : Math.max(delivered.from, condensed + 1);
  const toldTo = delivered === null ? last : Math.min(delivered.to, last);
  const all: Stretch[] = [
    { share: 'dropped', from: 1, to: dropped },
    { share: 'condensed', from: dropped + 1, to: condensed },
    { share: 'carried', from: condensed + 1, to: Math.min(told - 1, last) },
    { share: 'told', from: told, to: toldTo },
    { share: 'carried', from: toldTo + 1, to: delivered === null ? toldTo : last },
  ];
  return all.filter(({ from, to }) => from <= to);
}

/** Divides the stretches into about `most` cells, so that a long conversation fits. Each stretch has at least one. */
export function cellsOf(stretches: readonly Stretch[], most: number): Stretch[] {
  const total = stretches.reduce((sum, { from, to }) => sum + to - from + 1, 0);
  const each = Math.max(1, Math.ceil(total / most));
  return stretches.flatMap(({ share, from, to }) =>
    Array.from({ length: Math.ceil((to - from + 1) / each) }, (_, index) => {
      const start = from + index * each;
      return { share, from: start, to: Math.min(to, start + each - 1) };
    }),
  );
}

/** `1–9,431`. */
export function rangeText({ from, to }: Pick<Stretch, 'from' | 'to'>): string {
  const text = (n: number) => n.toLocaleString('en');
  return from === to ? text(from) : `${text(from)}–${text(to)}`;
}
