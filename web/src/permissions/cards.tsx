import { useEffect, useRef, useState } from 'react';
import type { Permission } from 'throughline/client';
import { useConversation } from '../data/conversation/use-conversation.ts';
import { readPermission } from '../data/permissions.ts';
import { useClient } from '../data/session.ts';
import { PermissionCard } from './card.tsx';

/** How long it stays on the screen how a question ended. */
const TOLD_MS = 12_000;

/** All questions of this conversation that wait, and how those ended that somebody has just seen here. */
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

/** The questions that were open here and are not any more, for a while. */
export function useJustEnded(open: readonly Permission[]): readonly Permission[] {
  const tl = useClient();
  const before = useRef<readonly Permission[]>([]);
  const [ended, setEnded] = useState<readonly Permission[]>([]);
  useEffect(() => {
    const gone = before.current.filter(({ id }) => !open.some((one) => one.id === id));
    before.current = open;
    for (const { id } of gone) {
      readPermission(tl, id).then(
        (permission) => {
          setEnded((known) => [...known.filter((one) => one.id !== id), permission]);
          setTimeout(() => setEnded((known) => known.filter((one) => one.id !== id)), TOLD_MS);
        },
        () => {}, // erased with its conversation: there is nothing to tell
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
