import { useEffect, useState } from 'react';
import type { Engine, TurnOutline } from 'throughline/client';
import { useClient } from '../session.ts';
import { useConversation, useConversationStore } from './use-conversation.ts';

interface OutlineState {
  /** All turns by number; null: they are being read. */
  readonly turns: readonly TurnOutline[] | null;
  readonly error: unknown;
}

const PAGE = 1_000;

/** Every turn without its text. Read again from the first open turn whenever a turn changes. */
export function useOutline(): OutlineState {
  const tl = useClient();
  const { id } = useConversationStore();
  const change = useConversation(({ last, conversation }) => `${last} ${conversation?.lastSeq ?? 0}`);
  const [state, setState] = useState<OutlineState>({ turns: null, error: null });
  // biome-ignore lint/correctness/useExhaustiveDependencies: `change` triggers a new read
  useEffect(() => {
    let isCurrent = true;
    const known = endedBeforeOpen(state.turns ?? []);
    readAfter(tl.engine, id, known.at(-1)?.n ?? 0).then(
      (rest) => isCurrent && setState({ turns: [...known, ...rest], error: null }),
      (error) => isCurrent && setState(({ turns }) => ({ turns, error })),
    );
    return () => {
      isCurrent = false;
    };
  }, [tl, id, change]);
  return state;
}

/** The turns before the first one that may still change. */
function endedBeforeOpen(turns: readonly TurnOutline[]): readonly TurnOutline[] {
  const open = turns.findIndex(({ endedAt }) => endedAt === null);
  return open < 0 ? turns : turns.slice(0, open);
}

async function readAfter(engine: Engine, id: string, after: number): Promise<TurnOutline[]> {
  const all: TurnOutline[] = [];
  for (;;) {
    const page = await engine.outline(id, { after: all.at(-1)?.n ?? after, limit: PAGE });
    if (page.length === 0) return all;
    all.push(...page);
    if (page.length < PAGE) return all;
  }
}
