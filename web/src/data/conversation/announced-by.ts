import { useEffect, useState } from 'react';
import type { ThroughlineClient } from 'throughline/client';
import { useClient } from '../session.ts';
import { type Announced, afterUpdate, NOTHING_ANNOUNCED } from './announced.ts';

/** How many conversations of the agent are searched. An agent announces its options at the beginning of each session. */
const MOST_CONVERSATIONS = 5;

/**
 * The models, modes and options of an agent, as it last announced them in a conversation of this owner: the choices for a new
 * conversation. They are read after the returned function was called. If none are found, any name can still be typed.
 */
export function useAnnouncedBy(agent: string | null): readonly [Announced, () => void] {
  const tl = useClient();
  const [known, setKnown] = useState<ReadonlyMap<string, Announced>>(new Map());
  const [asked, setAsked] = useState(0);
  // biome-ignore lint/correctness/useExhaustiveDependencies: after a failure, the next call reads again
  useEffect(() => {
    if (asked === 0 || agent === null || known.has(agent)) return;
    readAnnouncedBy(tl, agent).then(
      (announced) => setKnown((before) => new Map(before).set(agent, announced)),
      () => {}, // there is only less to choose from
    );
  }, [tl, agent, asked]);
  return [known.get(agent ?? '') ?? NOTHING_ANNOUNCED, () => setAsked((times) => times + 1)];
}

export async function readAnnouncedBy(
  { engine }: Pick<ThroughlineClient, 'engine'>,
  agent: string,
): Promise<Announced> {
  for (const { id } of await engine.list({ agent, limit: MOST_CONVERSATIONS })) {
    const events = await engine.events(id, { limit: 500 });
    const updates = events.flatMap((event) => (event.kind === 'turn.update' ? [event.payload.update] : []));
    const { options, modes } = updates.reduce(afterUpdate, NOTHING_ANNOUNCED);
    // The current values belong to that conversation, not to a new one.
    const unchosen = options.map((option) => ({ ...option, current: null }));
    if (options.length + modes.length > 0) return { ...NOTHING_ANNOUNCED, options: unchosen, modes };
  }
  return NOTHING_ANNOUNCED;
}
