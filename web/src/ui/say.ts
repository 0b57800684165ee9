import { create } from 'zustand';
import { describeError } from '../data/errors.ts';

export interface Toast {
  readonly id: number;
  readonly text: string;
  /** What to do about it. */
  readonly hint?: string;
  readonly tone: 'good' | 'bad' | 'plain';
}

/** The messages in the corner of the page, the newest last. */
export const useToasts = create<readonly Toast[]>(() => []);

let ids = 0;
/** How long a message is shown. An error stays until it is closed. */
const SHOWN_MS = 6_000;

/** Shown after a live session was ended. */
export const SESSION_ENDED = 'Session ended. Nothing that was said is lost.';

export function say(text: string, tone: Toast['tone'] = 'plain'): void {
  add({ text, tone });
}

/** Shows what went wrong, and what to do. */
export function sayError(error: unknown): void {
  const { message, hint } = describeError(error);
  add({ text: message, tone: 'bad', ...(hint !== null && { hint }) });
}

function add(what: Omit<Toast, 'id'>): void {
  ids += 1;
  const toast: Toast = { id: ids, ...what };
  useToasts.setState((before) => [...before.slice(-3), toast], true);
  if (toast.tone !== 'bad') setTimeout(() => dismissToast(toast.id), SHOWN_MS);
}

export function dismissToast(id: number): void {
  useToasts.setState((before) => before.filter((each) => each.id !== id), true);
}
