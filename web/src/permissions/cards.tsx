import { useEffect, useRef, useState } from 'react';
import type { Permission } from 'throughline/client';
import { useConversation } from '../data/conversation/use-conversation.ts';

import { useClient } from '../data/session.ts';
import { PermissionCard } from './card.tsx';

/** How long the outcome of a question is shown. */
const OUTCOME_MS = 12_000;

/** The open questions of this conversation, and the outcomes of those that have just ended. */
export function PermissionCards() {
  const open = useConversation(({ permissions }) => permissions);
  const ended = useJustEnded(open);
  const shown = [...ended.filter(({ id }) => !open.some((one) => one.id === id)), ...open];
  const movedAt = useChangedAt(shown.map(({ id, state }) => `${id} ${state}`).join());
  if (shown.length === 0) return null;
  return (
    <section className="mb-2 max-h-[50dvh] space-y-2 overflow-y-auto" aria-label="Permissions">
      {shown.map((permission) => (
        <PermissionCard key={permission.id} permission={permission} movedAt={movedAt} />
      ))}
    </section>
  );
}

/** The questions that were open on this page and have ended, for a while. */
export function useJustEnded(open: readonly Permission[]): readonly Permission[] {
  const tl = useClient();
  const before = useRef<readonly Permission[]>([]);
  const [ended, setEnded] = useState<readonly Permission[]>([]);
  useEffect(() => {
    const gone = before.current.filter(({ id }) => !open.some((one) => one.id === id));
    before.current = open;
    for (const { id } of gone) {
      tl.engine.permission(id).then(
        (permission) => {
          setEnded((known) => [...known.filter((one) => one.id !== id), permission]);
          setTimeout(() => setEnded((known) => known.filter((one) => one.id !== id)), OUTCOME_MS);
        },
        () => {}, // erased with its conversation: it has no outcome
      );
    }
  }, [tl, open]);
  return ended;
}

/** When `key` last changed, in the time of `performance.now()`. */
export function useChangedAt(key: string): number {
  const [last, setLast] = useState({ key, at: 0 });
  if (last.key !== key) setLast({ key, at: performance.now() });
  return last.at;
}
