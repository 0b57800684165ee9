import { clsx } from 'clsx';
import { Check, CircleHelp, CircleX, type LucideIcon } from 'lucide-react';
import { useEffect, useState } from 'react';
import type { ToldPart } from 'throughline/client';
import { promptText } from '../../../src/core/turn/content.ts';
import { useClient } from '../data/session.ts';
import { Button } from '../ui/button.tsx';
import { CopyButton, ErrorNote, Skeleton } from '../ui/notes.tsx';
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
    <div className="space-y-3">
      {state.parts.map((part, index) => (
        <ToldPartView key={String(index)} {...part} />
      ))}
    </div>
  );
}

const CHECKS: Readonly<
  Record<HashCheck, { readonly icon: LucideIcon; readonly ink: string; before: string; after: string }>
> = {
  matches: {
    ...{ icon: Check, ink: 'text-accent' },
    ...{ before: 'Checked in this browser: SHA-256', after: 'is the one on record' },
  },
  differs: {
    ...{ icon: CircleX, ink: 'text-broken' },
    ...{ before: 'Checked in this browser: this is not the text with SHA-256', after: 'on record' },
  },
  unchecked: {
    icon: CircleHelp,
    ink: 'text-look',
    before: 'SHA-256',
    after: 'not checked: browsers do that only over HTTPS',
  },
};

/** So much of a text is shown at first. It may be megabytes. */
const SHOWN = 2_000;

function ToldPartView({ part, check }: CheckedPart) {
  const [isWhole, setWhole] = useState(false);
  const { icon: Icon, ink, before, after } = CHECKS[check];
  const title = part.as === 'transcript' ? 'Written into the agent’s storage' : `Prompt of turn ${part.turn}`;
  const text = part.as === 'transcript' ? part.text : promptText(part.content);
  const isLong = text.length > SHOWN;
  return (
    <figure>
      <figcaption className="mb-2 flex flex-wrap items-center gap-x-3 text-facts text-muted">
        <span className="flex-1 whitespace-nowrap">
          {title} · {text.length.toLocaleString('en')} characters
        </span>
        <span className={clsx('flex items-center gap-1', ink)} title={part.sha256}>
          <Icon size={13} className="shrink-0" aria-hidden />
          <span>
            {before} <code className="font-mono">{shortHash(part.sha256)}</code> {after}
          </span>
        </span>
      </figcaption>
      <pre
        // biome-ignore lint/a11y/noNoninteractiveTabindex: keys scroll it
        tabIndex={0}
        className={clsx(
          'overflow-auto rounded-md border border-line bg-sunken px-3 py-2 font-mono text-facts leading-5 whitespace-pre-wrap wrap-anywhere',
          isWhole ? 'max-h-[60vh]' : 'max-h-32',
        )}
      >
        {isLong && !isWhole ? `${text.slice(0, SHOWN)}…` : text}
      </pre>
      <div className="mt-2 flex items-center gap-2">
        <Button small data-opens aria-expanded={isWhole} onClick={() => setWhole(!isWhole)}>
          {isWhole ? 'Show less' : 'Open all'}
        </Button>
        <CopyButton text={text} label="Copy the text" />
      </div>
    </figure>
  );
}

/** `9f3c 01aa … e17b`. */
function shortHash(sha256: string): string {
  return `${sha256.slice(0, 4)} ${sha256.slice(4, 8)} … ${sha256.slice(-4)}`;
}
