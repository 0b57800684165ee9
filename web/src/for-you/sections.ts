import type { Conversation, Permission, Task } from 'throughline/client';
import { isNew, type Seen } from '../data/seen.ts';

export interface ForYouFacts {
  readonly known: ReadonlyMap<string, Conversation>;
  readonly permissions: readonly Permission[];
  readonly tasks: readonly Task[];
  /** Null: the first visit of this browser. */
  readonly seen: Seen | null;
  /** What was dismissed: conversations with the number of their last event at that time, tasks with their round. */
  readonly left: Readonly<Record<string, number>>;
}

export type Need =
  /** The open questions of one conversation, oldest first; null: the conversation is not loaded yet. */
  | {
      readonly kind: 'questions';
      readonly id: string;
      readonly permissions: readonly [Permission, ...Permission[]];
      readonly conversation: Conversation | null;
    }
  /** A task that asks, or has failed. */
  | { readonly kind: 'task'; readonly id: string; readonly task: Task }
  | { readonly kind: 'unrestored'; readonly id: string; readonly conversation: Conversation }
  /** No process runs its turns until somebody acts. */
  | { readonly kind: 'stranded'; readonly id: string; readonly conversation: Conversation };

/** A conversation is in one section only. */
export interface ForYouSections {
  /** What needs a person before it can continue, oldest first. */
  readonly needs: readonly Need[];
  /** Work that has ended and that the person has not opened since. */
  readonly answered: readonly Conversation[];
  /** Those that are open, and those that have passed and were not seen. */
  readonly tasks: readonly Task[];
  /** What waits, and not for a person. */
  readonly later: readonly Conversation[];
  readonly running: readonly Conversation[];
  readonly resting: readonly Conversation[];
}

export function sectionsOf({ known, permissions, tasks, seen, left }: ForYouFacts): ForYouSections {
  const rows = [...known.values()].sort((a, b) => b.updatedAt - a.updatedAt);
  const isUnseen = (row: Conversation) => seen !== null && isNew(seen, row);
  const isTaskUnseen = (task: Task) => {
    const row = known.get(conversationOf(task) ?? '');
    const isAfter = seen !== null && (row === undefined ? (task.endedAt ?? 0) > seen.all : isNew(seen, row));
    return isAfter && left[task.id] !== task.progress.round;
  };
  const questions = questionsOf(permissions, known);
  const isAsked = new Set(questions.map(({ id }) => id));
  const unrestored = rows.filter((row) => row.state === 'unrestored' && left[row.id] !== row.lastSeq);
  const stranded = rows.filter((row) => row.stranded !== null && row.open > 0 && !isAsked.has(row.id));
  const stuck = tasks.filter(
    (task) =>
      !isAsked.has(conversationOf(task) ?? '') &&
      (task.state === 'asking' || (task.state === 'failed' && isTaskUnseen(task))),
  );
  const needs: Need[] = [
    ...questions,
    ...stuck.map((task) => ({ kind: 'task', id: task.id, task }) as const),
    ...unrestored.reverse().map((conversation) => ({ kind: 'unrestored', id: conversation.id, conversation }) as const),
    ...stranded.reverse().map((conversation) => ({ kind: 'stranded', id: conversation.id, conversation }) as const),
  ];
  const shown = tasks.filter((task) => isOpen(task) || (task.state === 'done' && isTaskUnseen(task)));
  const listed = new Set([
    ...needs.map(({ id }) => id),
    ...[...stuck, ...shown].flatMap((task) => conversationOf(task) ?? []),
  ]);
  const others = rows.filter(({ id }) => !listed.has(id));
  const running = others.filter(({ state }) => state === 'asks' || state === 'running');
  const later = others.filter(({ state }) => state === 'queued');
  const open = new Set([...running, ...later]);
  const ended = others.filter((row) => !open.has(row) && (row.historyCount > 0 || row.state !== 'idle'));
  const answered = ended.filter(isUnseen);
  return { needs, answered, tasks: shown, later, running, resting: ended.filter((row) => !isUnseen(row)) };
}

/** By conversation. Some may have been answered since they were read. */
function questionsOf(permissions: readonly Permission[], known: ReadonlyMap<string, Conversation>) {
  const open = permissions.filter(({ state }) => state === 'open');
  return [...Map.groupBy(open, ({ conversationId }) => conversationId)].map(([id, asked]) => {
    const all = asked as [Permission, ...Permission[]]; // a group has at least one
    return { kind: 'questions', id, permissions: all, conversation: known.get(id) ?? null } as const;
  });
}

/** An agent works on it, or will without a person. */
export function isOpen({ state }: Task): boolean {
  return state === 'running' || state === 'queued' || state === 'waiting';
}

/** Null: it has not started. */
export function conversationOf({ progress }: Task): string | null {
  return progress.conversationId;
}

/** `(2) Deploy · Throughline`: the count is first, so that narrow tabs show it. */
export function titleOf(needs: number, shown: string | null): string {
  return `${needs > 0 ? `(${needs}) ` : ''}${shown === null ? '' : `${shown} · `}Throughline`;
}
