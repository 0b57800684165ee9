import type { Conversation, Task } from 'throughline/client';
import { isOpen, type Need } from '../for-you/sections.ts';
import { newsOf, wordsOf } from '../for-you/words.ts';
import { branchOf, type GlyphName, lookOf, nameOf } from '../ui/state.tsx';
import { groupsOf, type Project, projectAt, projectOf } from './groups.ts';

/** A line of the rail. */
export type RailItem =
  | { readonly kind: 'heading'; readonly key: string; readonly project: Project | null; readonly isFolded: boolean }
  | ({ readonly kind: 'row' } & RailRow);

export interface RailRow {
  readonly key: string;
  readonly href: string;
  readonly title: string;
  /** What distinguishes it from another one with the same title; null: nothing has to. */
  readonly branch: string | null;
  /** Null: it was read, and nothing happens in it. */
  readonly glyph: GlyphName | null;
  /** Says the glyph. */
  readonly word: string;
  readonly isNew: boolean;
  readonly isPinned: boolean;
  /** The second line: only news. */
  readonly news: string | null;
  /** When it last changed, or since when it waits. */
  readonly at: number;
  /** Null: a task that has no conversation, or one that is not loaded. */
  readonly conversation: Conversation | null;
}

export interface RailFacts {
  readonly rows: readonly Conversation[];
  readonly known: ReadonlyMap<string, Conversation>;
  readonly needs: readonly Need[];
  readonly tasks: readonly Task[];
  /** Whether what needs somebody has a group here. */
  readonly showsNeeds: boolean;
  /** The paths of the folded projects. */
  readonly folded: ReadonlySet<string>;
  isUnread(row: Conversation): boolean;
}

/** What needs somebody, then the projects. Each conversation once; those that were put away only if they need somebody. */
export function itemsOf({ rows, known, needs, tasks, showsNeeds, folded, isUnread }: RailFacts): readonly RailItem[] {
  const items: RailItem[] = [];
  const branch = (row: Conversation) => branchOf(row, (id) => known.get(id)?.title);
  if (showsNeeds && needs.length > 0) {
    items.push({ kind: 'heading', key: 'needs', project: null, isFolded: false });
    items.push(...needs.map((need) => ({ kind: 'row', ...needRow(need, branch) }) as const));
  }
  const listed = new Set(
    needs.flatMap((need) => (need.kind === 'task' ? (need.task.progress.conversationId ?? []) : need.id)),
  );
  const taskOf = new Map(tasks.filter(isOpen).map((task) => [task.progress.conversationId, task]));
  const read = new Set(rows);
  const pinned = [...known.values()].filter((row) => row.pinned && !read.has(row));
  const groups = groupsOf([...rows, ...pinned].filter(({ id, putAway }) => !listed.has(id) && !putAway));
  for (const { project, rows: own } of groups) {
    const isFolded = folded.has(project.path);
    // If there are no projects, nothing has to be grouped.
    if (project.path !== '' || groups.length > 1)
      items.push({ kind: 'heading', key: `project ${project.path}`, project, isFolded });
    if (isFolded) continue;
    for (const row of own) {
      const news = newsOf(row, taskOf.get(row.id));
      items.push({ kind: 'row', ...conversationRow(row, isUnread(row)), news, branch: branch(row) });
    }
  }
  return items;
}

function conversationRow(row: Conversation, isNew: boolean): Omit<RailRow, 'news' | 'branch'> {
  const look = lookOf(row);
  const hasEnded = row.open === 0;
  // What was read is silent, however it ended.
  const shown = hasEnded && !isNew && row.stranded === null ? null : look;
  const glyph = shown?.glyph ?? (isNew ? 'new' : null);
  return {
    ...{ key: row.id, href: `/c/${row.id}`, title: nameOf(row), glyph, isNew, at: row.updatedAt, conversation: row },
    isPinned: row.pinned,
    word: shown?.word ?? (isNew ? 'New answer' : ''),
  };
}

function needRow(need: Need, branch: (row: Conversation) => string | null): RailRow {
  const [row, at] = need.kind === 'task' ? [null, need.task.endedAt ?? need.task.startedAt ?? 0] : placeOf(need);
  const hasFailed = need.kind === 'task' && need.task.state === 'failed';
  const project = need.kind === 'task' ? projectAt(need.task.cwd) : row && projectOf(row);
  const words = wordsOf(need);
  return {
    ...{ key: need.id, href: need.kind === 'task' ? `/tasks/${need.id}` : `/c/${need.id}`, at, conversation: row },
    title: need.kind === 'task' ? (need.task.name ?? need.task.goal) : row === null ? 'A conversation' : nameOf(row),
    branch: row && branch(row),
    glyph: hasFailed ? 'failed' : 'needs',
    word: hasFailed ? 'Failed' : NEEDS[need.kind],
    ...{ isNew: false, isPinned: false },
    news: project === null ? words : `${project.name} · ${words}`,
  };
}

const NEEDS = { questions: 'Asks you', task: 'Asks you', unrestored: 'Not restored', stranded: 'Stranded' } as const;

function placeOf(need: Exclude<Need, { kind: 'task' }>): readonly [Conversation | null, number] {
  if (need.kind === 'questions') return [need.conversation, need.permissions[0].askedAt];
  return [need.conversation, need.conversation.updatedAt];
}
