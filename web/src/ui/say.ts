import { create } from 'zustand';
import { describeError } from '../data/errors.ts';

export interface Said {
  readonly id: number;
  readonly text: string;
  /** What to do about it. */
  readonly hint?: string;
  readonly tone: 'good' | 'bad' | 'plain';
}

/** The messages in the corner of the page, the newest last. */
export const useSaid = create<readonly Said[]>(() => []);

let ids = 0;
/** How long a message is shown. An error stays until it is closed. */
const SHOWN_MS = 6_000;

/** Said after a live session was ended. */
export const SESSION_ENDED = 'Session ended. Nothing that was said is lost.';

export function say(text: string, tone: Said['tone'] = 'plain'): void {
  add({ text, tone });
}

/** Shows what went wrong, and what to do. */
export function sayError(error: unknown): void {
  const { message, hint } = describeError(error);
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
