import { useEffect } from 'react';
import { type ThroughlineClient, ThroughlineError } from 'throughline/client';
import { preferenceNames, readPreference, writePreference } from '../preferences.ts';
import { useClient, useMe } from '../session.ts';
import { forgetDraft, NEW, type Written, writtenIn } from './draft.ts';

/** A draft that was not edited for this long is deleted. */
const KEPT_MS = 28 * 86_400_000;
/** For how many drafts one visit checks whether the conversation still exists. The oldest come first. */
const MOST_CHECKED = 20;

/** Once a visit, deletes the drafts of erased conversations, and those that were not edited for four weeks. */
export function useFreeDrafts(): void {
  const tl = useClient();
  const { owner } = useMe();
  useEffect(() => void freeDrafts(tl, owner), [tl, owner]);
}

async function freeDrafts(tl: ThroughlineClient, owner: string): Promise<void> {
  const { old, check } = sortDrafts(writtenDrafts(owner), owner, Date.now());
  for (const id of old) forgetDraft(id);
  for (const id of check) {
    if (!(await isGone(tl, id))) continue;
    forgetDraft(id);
    writePreference(`place.${id}`, null);
  }
}

/** Which drafts are too old, and for which to check the conversation: only those of this owner, because others are never found. */
export function sortDrafts(drafts: ReadonlyMap<string, Written>, owner: string, now: number) {
  const byAge = [...drafts].sort(([, a], [, b]) => a.at - b.at);
  const isOld = ({ at }: Written) => now - at > KEPT_MS;
  const mine = byAge.filter(([id, written]) => id !== NEW && !isOld(written) && written.owner === owner);
  return {
    old: byAge.filter(([, written]) => isOld(written)).map(([id]) => id),
    check: mine.map(([id]) => id).slice(0, MOST_CHECKED),
  };
}

/** Every draft of this browser. One without a stored time counts as written now. */
function writtenDrafts(owner: string): Map<string, Written> {
  const drafts = new Map<string, Written>();
  for (const kind of ['draft.', 'choices.', 'sending.', 'written.']) {
    for (const id of preferenceNames(kind)) {
      const written = writtenIn(readPreference(`written.${id}`));
      if (written === null) writePreference(`written.${id}`, `${Date.now()} ${owner}`);
      drafts.set(id, written ?? { at: Date.now(), owner });
    }
  }
  return drafts;
}

async function isGone(tl: ThroughlineClient, id: string): Promise<boolean> {
  try {
    await tl.engine.conversation(id);
    return false;
  } catch (error) {
    return error instanceof ThroughlineError && error.code === 'not_found';
  }
}
