import { create } from 'zustand';
import { toldOf } from '../data/errors.ts';

export interface Said {
  readonly id: number;
  readonly text: string;
  /** What to do about it. */
  readonly hint?: string;
  readonly tone: 'good' | 'bad' | 'plain';
}

/** What the page says in its corner, the newest last. */
export const useSaid = create<readonly Said[]>(() => []);

let ids = 0;
/** Long enough to read. What went wrong stays until it is closed. */
const SHOWN_MS = 6_000;

export function say(text: string, tone: Said['tone'] = 'plain'): void {
  add({ text, tone });
}

/** Says what went wrong, and what to do. */
export function sayError(error: unknown): void {
  const { message, hint } = toldOf(error);
  add({ text: message, tone: 'bad', ...(hint !== null && { hint }) });
}

function add(what: Omit<Said, 'id'>): void {
  ids += 1;
  const said: Said = { id: ids, ...what };
  useSaid.setState((before) => [...before.slice(-3), said], true);
  if (said.tone !== 'bad') setTimeout(() => unsay(said.id), SHOWN_MS);
}

export function unsay(id: number): void {
  useSaid.setState((before) => before.filter((each) => each.id !== id), true);
}
