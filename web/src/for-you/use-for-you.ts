import { useEffect, useMemo } from 'react';
import type { Conversation, Task } from 'throughline/client';
import { useList } from '../data/list.ts';
import { useNeeds } from '../data/needs.ts';
import { readPreference, usePreference, writePreference } from '../data/preferences.ts';
import { firstSeen, keepSeen, markSeen, parseSeen } from '../data/seen.ts';
import { useTasks } from '../data/tasks.ts';
import { conversationOf, type ForYouSections, type Need, sectionsOf } from './sections.ts';

const LEFT = 'for-you.left';

export function useForYou(): ForYouSections {
  const { known, phase } = useList();
  const { permissions } = useNeeds();
  const { tasks } = useTasks();
  const [seen] = usePreference('seen');
  const [left] = usePreference(LEFT);
  useEffect(() => {
    if (phase === 'ready' && parseSeen(seen) === null) keepSeen(firstSeen(known.values()));
  }, [phase, seen, known]);
  return useMemo(
    () => sectionsOf({ known, permissions, tasks, seen: parseSeen(seen), left: parseLeft(left) }),
    [known, permissions, tasks, seen, left],
  );
}

/** Dismisses what can wait: until something else happens in it. False: only an answer ends it. */
export function dismiss(need: Need): boolean {
  if (need.kind === 'unrestored') leave(need.id, need.conversation.lastSeq);
  else if (need.kind === 'task' && need.task.state === 'failed') leaveTask(need.task);
  else return false;
  return true;
}

export function leaveTask(task: Task): void {
  leave(task.id, task.progress.round);
  const row = useList.getState().known.get(conversationOf(task) ?? '');
  if (row !== undefined) markSeen(row);
}

export function markAllSeen(): void {
  keepSeen(firstSeen(useList.getState().known.values()));
}

function leave(id: string, at: Conversation['lastSeq']): void {
  writePreference(LEFT, JSON.stringify({ ...parseLeft(readPreference(LEFT)), [id]: at }));
}

function parseLeft(stored: string | null): Readonly<Record<string, number>> {
  try {
    const left: unknown = JSON.parse(stored ?? '{}');
    return typeof left === 'object' && left !== null ? (left as Record<string, number>) : {};
  } catch {
    return {};
  }
}
