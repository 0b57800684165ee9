import { useEffect, useState } from 'react';
import type { ThroughlineClient } from 'throughline/client';
import { useClient } from '../session.ts';
import { type Announced, afterUpdate, NOTHING_ANNOUNCED } from './announced.ts';

/** So many of its conversations are looked through. An agent announces what it offers at the beginning of each session. */
const MOST_CONVERSATIONS = 5;

/**
 * The models, modes and options of an agent, as it last announced them in a conversation of this owner: for choosing before there is a new
 * one. Read after the returned function was called, when the agent is known. Where nothing is known, any name can still be typed.
 */
export function useAnnouncedBy(agent: string | null): readonly [Announced, () => void] {
  const tl = useClient();
  const [known, setKnown] = useState<ReadonlyMap<string, Announced>>(new Map());
  const [asked, setAsked] = useState(0);
  // biome-ignore lint/correctness/useExhaustiveDependencies: what failed is read again when somebody asks again
  useEffect(() => {
    if (asked === 0 || agent === null || known.has(agent)) return;
    readAnnouncedBy(tl, agent).then(
      (announced) => setKnown((before) => new Map(before).set(agent, announced)),
      () => {}, // there is less to choose from, and nothing is missing
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
    // What was chosen there is not what a new conversation has.
    const unchosen = options.map((option) => ({ ...option, current: null }));
    if (options.length + modes.length > 0) return { ...NOTHING_ANNOUNCED, options: unchosen, modes };
  }
  return NOTHING_ANNOUNCED;
}
