import type { Prompt, QueueTurn } from 'throughline/client';

/** The list after one item was moved. */
export function moved<T>(list: readonly T[], from: number, to: number): T[] {
  const place = Math.max(0, Math.min(list.length - 1, to));
  const [one] = list.slice(from, from + 1);
  if (one === undefined) return [...list];
  const rest = list.toSpliced(from, 1);
  return rest.toSpliced(place, 0, one);
}

/** Every queued turn in the wanted order, with the changes by turn id. */
export function queueOf(ids: readonly string[], change: Readonly<Record<string, QueueChange>> = {}): QueueTurn[] {
  return ids.map((turn) => ({ turn, ...change[turn] }));
}

type QueueChange = { readonly prompt: Prompt } | { readonly drop: true };
