import type { Conversation, Permission, Task } from 'throughline/client';
import { isNew, type Seen } from '../data/seen.ts';

export interface InboxFacts {
  readonly known: ReadonlyMap<string, Conversation>;
  readonly permissions: readonly Permission[];
  readonly tasks: readonly Task[];
  /** Null: the first visit of this browser. */
  readonly seen: Seen | null;
  /** Dismissed failed restores, by conversation, with the number of its last event at that time. */
  readonly left: Readonly<Record<string, number>>;
}

export type Need =
  | { readonly kind: 'permission'; readonly permission: Permission; readonly conversation: Conversation | null }
  | { readonly kind: 'task'; readonly task: Task }
  | { readonly kind: 'unrestored'; readonly conversation: Conversation }
  /** No process runs its turns until somebody acts. */
  | { readonly kind: 'stranded'; readonly conversation: Conversation };

/** A conversation is in one section only. */
export interface InboxSections {
  /** What needs a person before it can continue, oldest first. */
  readonly needs: readonly Need[];
  /** Open work that waits for nobody. */
  readonly running: readonly Conversation[];
  /** Work that has ended and that the person has not opened since. */
  readonly changed: readonly Conversation[];
  readonly resting: readonly Conversation[];
}

export function inboxOf({ known, permissions, tasks, seen, left }: InboxFacts): InboxSections {
  const rows = [...known.values()].sort((a, b) => b.updatedAt - a.updatedAt);
  const unrestored = rows.filter((row) => row.state === 'unrestored' && left[row.id] !== row.lastSeq);
  // Some may have been answered since they were read.
  const asked = permissions.filter(({ state }) => state === 'open');
  const isAsked = new Set(asked.map(({ conversationId }) => conversationId));
  const stranded = rows.filter((row) => row.stranded !== null && row.open > 0 && !isAsked.has(row.id));
  const needs: Need[] = [
    ...asked.map((permission) => {
      const conversation = known.get(permission.conversationId) ?? null;
      return { kind: 'permission', permission, conversation } as const;
    }),
    ...tasks.filter(({ state }) => state === 'asking').map((task) => ({ kind: 'task', task }) as const),
    ...unrestored.reverse().map((conversation) => ({ kind: 'unrestored', conversation }) as const),
    ...stranded.reverse().map((conversation) => ({ kind: 'stranded', conversation }) as const),
  ];
  const needed = new Set([...isAsked, ...unrestored.map(({ id }) => id), ...stranded.map(({ id }) => id)]);
  const others = rows.filter(({ id }) => !needed.has(id));
  const running = others.filter(({ state }) => state === 'asks' || state === 'running' || state === 'queued');
  const ended = others.filter((row) => !running.includes(row) && (row.historyCount > 0 || row.state !== 'idle'));
  const isChanged = (row: Conversation) => seen !== null && isNew(seen, row);
  const changed = ended.filter(isChanged);
  return { needs, running, changed, resting: ended.filter((row) => !isChanged(row)) };
}

/** `(2) Deploy · Throughline`: the count is first, so that narrow tabs show it. */
export function titleOf(needs: number, shown: string | null): string {
  return `${needs > 0 ? `(${needs}) ` : ''}${shown === null ? '' : `${shown} · `}Throughline`;
}
