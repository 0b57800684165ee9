import { useEffect } from 'react';
import type { Conversation, Permission, ThroughlineClient } from 'throughline/client';
import { create } from 'zustand';
import { addKnown, useList } from './list.ts';
import { Newest } from './newest.ts';
import { useClient } from './session.ts';

/** What waits for a person and is not in the list of conversations. */
interface NeedsState {
  /** The questions of agents that wait for an answer, oldest first. */
  readonly permissions: readonly Permission[];
}

export const useNeeds = create<NeedsState>(() => ({ permissions: [] }));

const newest = new Newest();

/** How many conversations of questions are read one by one, for their names. */
const MOST_UNLISTED = 20;

/** Keeps them current for as long as the component is shown. */
export function useKeepNeeds(): void {
  const tl = useClient();
  useEffect(() => {
    let asking = '';
    const look = (known: ReadonlyMap<string, Conversation>) => {
      const now = askingOf(known);
      if (now !== asking) void readPermissions(tl);
      asking = now;
    };
    look(useList.getState().known);
    return useList.subscribe(({ known }, before) => known !== before.known && look(known));
  }, [tl]);
}

/** A value that changes whenever a question may have been asked or answered. */
function askingOf(known: ReadonlyMap<string, Conversation>): string {
  const asks = [...known.values()].filter(({ openPermissions }) => openPermissions > 0);
  return asks.map(({ id, lastSeq }) => `${id} ${lastSeq}`).join();
}

async function readPermissions(tl: ThroughlineClient): Promise<void> {
  // It fails when the server cannot be reached, which the connection strip shows. It is read again after the next change of the list.
  const read = await newest.of('permissions', readAsked(tl)).catch(() => null);
  if (read === null) return;
  addKnown(read.unlisted);
  useNeeds.setState({ permissions: read.permissions });
}

/** The open questions, and the conversations of those that the list does not have yet. */
async function readAsked(tl: ThroughlineClient) {
  const permissions = await tl.permissions({ open: true });
  const { known } = useList.getState();
  const missing = new Set(permissions.map(({ conversationId }) => conversationId).filter((id) => !known.has(id)));
  const rows = [...missing].slice(0, MOST_UNLISTED).map((id) => tl.engine.conversation(id).catch(() => null));
  return { permissions, unlisted: (await Promise.all(rows)).filter((row) => row !== null) };
}
