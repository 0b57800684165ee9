import { useMemo } from 'react';
import type { TurnOutline } from 'throughline/client';
import { addUsage, NO_USAGE, type Usage } from '../../../src/core/turn/usage.ts';
import { useOutline } from '../data/conversation/outline.ts';
import { useConversation, useConversationStore } from '../data/conversation/use-conversation.ts';
import { Empty, ErrorNote, Facts, Skeleton } from '../ui/notes.tsx';
import { shellWord } from '../ui/shell-word.ts';

import { amountsOf, pointsOf, shownCost, shownCount } from './amounts.ts';
import { Plot } from './plot.tsx';

/** The usage of the conversation, by turn and by session. What was not reported is shown as –, not as zero. */
export function UsageTab() {
  const { turns, error } = useOutline();
  const { id } = useConversationStore();
  const conversation = useConversation((state) => state.conversation);
  const sessions = useConversation((state) => state.sessions);
  const points = useMemo(() => pointsOf(turns ?? []), [turns]);
  if (error !== null) return <ErrorNote error={error} cli={`throughline show ${shellWord(conversation?.key ?? id)}`} />;
  if (turns === null) return <Skeleton lines={6} />;
  if (turns.length === 0) return <Empty title="No usage yet." />;

  return (
    <div className="space-y-5 p-4 text-ui">
      <Totals usage={sumOf(turns)} turns={turns.length} />
      <figure>
        <figcaption className="mb-1 text-facts text-muted">
          Tokens per turn: <span className="text-session-1">in</span> and <span className="text-session-2">out</span>; a
          dashed line where a session began
        </figcaption>
        <Plot points={points} of="tokens" />
      </figure>
      {points.cost.some((value) => value !== null) && (
        <figure>
          <figcaption className="mb-1 text-facts text-muted">Cost per turn, in US dollars</figcaption>
          <Plot points={points} of="cost" />
        </figure>
      )}
      <table className="w-full tabular-nums">
        <thead>
          <tr className="text-left text-facts text-muted">
            <th className="py-1 font-normal">Session</th>
            <th className="font-normal">Turns</th>
            <th className="text-right font-normal">In</th>
            <th className="text-right font-normal">Out</th>
            <th className="text-right font-normal">Cost</th>
          </tr>
        </thead>
        <tbody>
          {sessions.toReversed().map(({ id, agent, usage, turns }) => (
            <SessionRow key={id} name={`${agent} ${id.slice(0, 8)}`} turns={turns} usage={usage} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function SessionRow({ name, turns, usage }: { name: string; turns: number; usage: Usage }) {
  const { read, written } = amountsOf(usage);
  return (
    <tr className="border-t border-line">
      <td className="py-1 font-mono text-facts">{name}</td>
      <td>{turns}</td>
      <td className="text-right">{shownCount(read)}</td>
      <td className="text-right">{shownCount(written)}</td>
      <td className="text-right">{shownCost(usage)}</td>
    </tr>
  );
}

function Totals({ usage, turns }: { usage: Usage; turns: number }) {
  const { read, written, cached, calls } = amountsOf(usage);
  const facts: readonly (readonly [string, string])[] = [
    ['Turns', String(turns)],
    ['Tokens in', shownCount(read)],
    ['of these, from the cache', shownCount(cached)],
    ['Tokens out', shownCount(written)],
    ['Model calls', shownCount(calls)],
    ['Cost', shownCost(usage)],
  ];
  return <Facts facts={facts} className="grid-cols-[1fr_auto] [&_dd]:text-right" />;
}

function sumOf(turns: readonly TurnOutline[]): Usage {
  return turns.reduce((sum, { usage }) => addUsage(sum, usage), NO_USAGE);
}
