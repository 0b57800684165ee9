import { create } from 'zustand';
import { describeError } from '../data/errors.ts';

export interface Toast {
  readonly id: number;
  readonly text: string;
  /** What to do about it. */
  readonly hint?: string;
  readonly tone: 'good' | 'bad' | 'plain';
  /** How often the same error came, since it was last closed. */
  readonly times: number;
}

/** The messages in the corner of the page, the newest last. */
export const useToasts = create<readonly Toast[]>(() => []);

let ids = 0;
/** How long a message is shown. An error stays until it is closed. */
const SHOWN_MS = 6_000;
/** The most messages at once that are no errors. */
const MOST_PASSING = 4;

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

function add(what: Omit<Toast, 'id' | 'times'>): void {
  ids += 1;
  const id = ids;
  useToasts.setState((before) => withToast(before, { id, times: 1, ...what }), true);
  if (what.tone !== 'bad') setTimeout(() => dismissToast(id), SHOWN_MS);
}

/** An error is not pushed out by others. If it is shown already, it moves to the end and is counted. */
export function withToast(before: readonly Toast[], toast: Toast): Toast[] {
  if (toast.tone !== 'bad') {
    const passing = before.filter(({ tone }) => tone !== 'bad').slice(1 - MOST_PASSING);
    return [...before.filter((each) => each.tone === 'bad' || passing.includes(each)), toast];
  }
  const isSame = ({ tone, text, hint }: Toast) => tone === 'bad' && text === toast.text && hint === toast.hint;
  const times = (before.find(isSame)?.times ?? 0) + 1;
  return [...before.filter((each) => !isSame(each)), { ...toast, times }];
}

export function dismissAll(): void {
  useToasts.setState([], true);
}

export function dismissToast(id: number): void {
  useToasts.setState((before) => before.filter((each) => each.id !== id), true);
}
