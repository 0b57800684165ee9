import { useEffect, useMemo } from 'react';
import type { Conversation } from 'throughline/client';
import { useList } from '../data/list.ts';
import { useNeeds } from '../data/needs.ts';
import { readPreference, usePreference, writePreference } from '../data/preferences.ts';
import { firstSeen, keepSeen, parseSeen } from '../data/seen.ts';
import { type InboxSections, inboxOf } from './sections.ts';

const LEFT = 'inbox.left';

export function useInbox(): InboxSections {
  const { known, phase } = useList();
  const { permissions, tasks } = useNeeds();
  const [seen] = usePreference('seen');
  const [left] = usePreference(LEFT);
  useEffect(() => {
    if (phase === 'ready' && parseSeen(seen) === null) keepSeen(firstSeen(known.values()));
  }, [phase, seen, known]);
  return useMemo(
    () => inboxOf({ known, permissions, tasks, seen: parseSeen(seen), left: parseLeft(left) }),
    [known, permissions, tasks, seen, left],
  );
}

/** Dismisses a failed restore until something else happens in the conversation. */
export function leaveUnrestored({ id, lastSeq }: Conversation): void {
  writePreference(LEFT, JSON.stringify({ ...parseLeft(readPreference(LEFT)), [id]: lastSeq }));
}

function parseLeft(stored: string | null): Readonly<Record<string, number>> {
  try {
    const left: unknown = JSON.parse(stored ?? '{}');
    return typeof left === 'object' && left !== null ? (left as Record<string, number>) : {};
  } catch {
    return {};
  }
}
