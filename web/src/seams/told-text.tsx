import { clsx } from 'clsx';
import { Check, CircleHelp, CircleX, type LucideIcon } from 'lucide-react';
import { useEffect, useState } from 'react';
import type { ToldPart } from 'throughline/client';
import { promptText } from '../../../src/core/turn/content.ts';
import { useClient } from '../data/session.ts';
import { ErrorNote, Skeleton } from '../ui/notes.tsx';
import { checkTold, type HashCheck } from './seam.ts';

interface CheckedPart {
  readonly part: ToldPart;
  readonly check: HashCheck;
}

type ToldState =
  | { readonly phase: 'loading' }
  | { readonly phase: 'failed'; readonly error: unknown }
  | { readonly phase: 'ready'; readonly parts: readonly CheckedPart[] };

/** Reads what the session of a turn was told, and checks the hashes in this browser. */
function useTold(turnId: string, attempt: number): ToldState {
  const { engine } = useClient();
  const [state, setState] = useState<ToldState>({ phase: 'loading' });
  useEffect(() => {
    let isCurrent = true;
    const read = async () => {
      const told = await engine.told(turnId, { attempt });
      const parts = await Promise.all(told.parts.map(async (part) => ({ part, check: await checkTold(part) })));
      if (isCurrent) setState({ phase: 'ready', parts });
    };
    read().catch((error) => isCurrent && setState({ phase: 'failed', error }));
    return () => {
      isCurrent = false;
    };
  }, [engine, turnId, attempt]);
  return state;
}

/** The exact text that a session was told for an attempt at a turn. The hash of each part is checked. */
export function ToldText({ turnId, attempt }: { turnId: string; attempt: number }) {
  const state = useTold(turnId, attempt);
  if (state.phase === 'loading') return <Skeleton lines={3} />;
  if (state.phase === 'failed') return <ErrorNote error={state.error} cli={`throughline told ${turnId}`} />;
  return (
    <div className="space-y-2">
      {state.parts.map((part, index) => (
        <ToldPartView key={String(index)} {...part} />
      ))}
    </div>
  );
}

const CHECKS: Readonly<Record<HashCheck, { readonly icon: LucideIcon; readonly ink: string; readonly word: string }>> =
  {
    matches: { icon: Check, ink: 'text-accent', word: 'matches' },
    differs: { icon: CircleX, ink: 'text-broken', word: 'does not match' },
    unchecked: { icon: CircleHelp, ink: 'text-look', word: 'not checked: browsers do that only over HTTPS' },
  };

function ToldPartView({ part, check }: CheckedPart) {
  const { icon: Icon, ink, word } = CHECKS[check];
  const title = part.as === 'transcript' ? 'Written into the agent’s storage' : `Prompt of turn ${part.turn}`;
  return (
    <figure className="overflow-hidden rounded-sm border border-line bg-raised">
      <figcaption className="flex flex-wrap items-center gap-x-3 border-b border-line px-2.5 py-1 text-facts text-muted">
        <span className="text-ink">{title}</span>
        <code className="font-mono" title={part.sha256}>
          sha256 {part.sha256.slice(0, 12)}…
        </code>
        <span className={clsx('flex items-center gap-1', ink)}>
          <Icon size={13} aria-hidden />
          {word}
        </span>
      </figcaption>
      <pre
        // biome-ignore lint/a11y/noNoninteractiveTabindex: keys scroll it
        tabIndex={0}
        className="max-h-96 overflow-auto px-2.5 py-2 font-mono text-facts leading-5 whitespace-pre-wrap"
      >
        {part.as === 'transcript' ? part.text : promptText(part.content)}
      </pre>
    </figure>
  );
}
