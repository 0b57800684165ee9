import { create } from 'zustand';

/** Polite: after what is being read. Assertive: at once, because somebody is needed or something is lost. */
export type Urgency = 'polite' | 'assertive';

export interface News {
  readonly text: string;
  readonly urgency: Urgency;
}

/** What screen readers say next. `id`: the same text may be said again. */
interface Said {
  readonly id: number;
  readonly text: string;
}

/** After this time a text is removed, so that nobody finds it while they read the page. */
const SAID_MS = 5_000;

export const useSaid = create<Readonly<Record<Urgency, readonly Said[]>>>(() => ({ polite: [], assertive: [] }));

let ids = 0;

/** Says a sentence to screen readers, once. */
export function announce({ text, urgency }: News): void {
  ids += 1;
  const id = ids;
  useSaid.setState((said) => ({ ...said, [urgency]: [...said[urgency], { id, text }] }));
  setTimeout(() => {
    useSaid.setState((said) => ({ ...said, [urgency]: said[urgency].filter((each) => each.id !== id) }));
  }, SAID_MS);
}
