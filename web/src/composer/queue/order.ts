import type { Prompt, QueueTurn } from 'throughline/client';

/** The list after one item was moved. */
export function moved<T>(list: readonly T[], from: number, to: number): T[] {
  const one = list[from];
  if (one === undefined) return [...list];
  return list.toSpliced(from, 1).toSpliced(Math.max(0, to), 0, one);
}

/** Every queued turn in the wanted order, with the changes by turn id. */
export function queueOf(ids: readonly string[], change: Readonly<Record<string, QueueChange>> = {}): QueueTurn[] {
  return ids.map((turn) => ({ turn, ...change[turn] }));
}

type QueueChange = { readonly prompt: Prompt } | { readonly drop: true };
