import { clsx } from 'clsx';
import { Ban, Brain, ChevronRight, CirclePause, CircleX, Clock, type LucideIcon } from 'lucide-react';
import { memo } from 'react';
import type { RecordPart, Turn } from 'throughline/client';
import { Link } from 'wouter';
import { isOpen, type TurnItem } from '../data/conversation/model.ts';
import { useIsShown } from '../data/conversation/shown.ts';
import { useConversation, useTurn } from '../data/conversation/use-conversation.ts';
import { Markdown } from '../markdown/markdown.tsx';
import { RestoringBar, SeamBar } from '../seams/seam-bar.tsx';
import { useSeam } from '../seams/use-seam.ts';
import { sessionColour, sessionOrders } from '../ui/colours.ts';
import { Ago } from '../ui/time.tsx';
import { useFold } from './find.ts';
import { PromptView } from './prompt.tsx';
import { Tool } from './tool.tsx';
import { TurnMenuButton } from './turn-menu.tsx';
import { doing, factsOf, noticeText } from './turn-words.ts';

export type Target = { readonly kind: 'turn' | 'seam'; readonly n: number } | null;

/** A turn with the seam before it. It does not depend on other turns, so a stream renders one row only. */
export const TurnRow = memo(function TurnRow({ n, target }: { n: number; target: Target }) {
  const item = useTurn(n);
  const seam = useSeam(n);
  const colour = useSessionColour(item?.turn.sessionId ?? null);
  const isShown = useIsShown(n);
  if (item === undefined) return <Unloaded n={n} />;
  if (!isShown && seam === null) return null;
  const isTarget = target?.n === n && target.kind === 'turn';
  return (
    <div className="mx-auto max-w-3xl space-y-3 px-4 pb-7 max-sm:px-3">
      {item.restoring !== null && <RestoringBar restoring={item.restoring} />}
      {item.restoring === null && seam !== null && (
        <SeamBar seam={seam} n={n} isTarget={target?.n === n && target.kind === 'seam'} />
      )}
      {isShown && (
        <article
          aria-label={`Turn ${n}`}
          className={clsx('relative rounded-sm pl-4', isTarget && 'outline-2 outline-offset-8 outline-accent/60')}
        >
          <span
            aria-hidden
            title={item.turn.sessionId === null ? 'No session yet' : `Session ${item.turn.sessionId}`}
            className="absolute inset-y-0 left-0 w-[3px] rounded-full bg-line-strong"
            style={colour === null ? undefined : { background: colour }}
          />
          <TurnBody item={item} />
        </article>
      )}
    </div>
  );
});

function TurnBody({ item }: { item: TurnItem }) {
  const { turn, parts } = item;
  return (
    <div className="space-y-2.5">
      <Heading n={turn.n} createdAt={turn.createdAt} />
      <PromptView prompt={turn.prompt} />
      {parts.map((part, index) => (
        <Part
          key={String(index)}
          part={part}
          n={turn.n}
          isOpen={isOpen(item) && index === parts.length - 1}
          isRunning={isOpen(item)}
        />
      ))}
      {isOpen(item) ? <Running item={item} /> : <Ended turn={turn} />}
    </div>
  );
}

const Heading = memo(function Heading({ n, createdAt }: Pick<Turn, 'n' | 'createdAt'>) {
  return (
    <header className="-mb-1 flex items-center gap-2 text-facts text-faint tabular-nums">
      <Link href={`/turn/${n}`} className="touch pointer-coarse:-mx-4 hover:text-ink" aria-label={`Link to turn ${n}`}>
        {n}
      </Link>
      <Ago at={createdAt} />
      <span className="ml-auto">
        <TurnMenuButton n={n} />
      </span>
    </header>
  );
});

interface PartProps {
  readonly part: RecordPart;
  readonly n: number;
  /** More of the part may come. */
  readonly isOpen: boolean;
  /** The turn is running. */
  readonly isRunning: boolean;
}

function Part({ part, n, isOpen, isRunning }: PartProps) {
  if (part.type === 'tool') return <Tool tool={part} n={n} isRunning={isRunning} />;
  if (part.type === 'thought') return <Thought text={part.text} n={n} isOpen={isOpen} />;
  return <Markdown text={part.text} isOpen={isOpen} />;
}

/** Folded at first: the answer matters more. */
function Thought({ text, n, isOpen }: { text: string; n: number; isOpen: boolean }) {
  const [isShown, toggle] = useFold(n, () => text);
  return (
    <div className="text-ui text-muted">
      <button
        type="button"
        aria-expanded={isShown}
        onClick={toggle}
        className="-mx-1.5 flex max-w-full items-center gap-2 rounded-sm px-1.5 py-0.5 hover:bg-hover pointer-coarse:min-h-11"
      >
        <Brain size={14} className="shrink-0" aria-hidden />
        <span className="shrink-0">{isOpen ? 'Thinking' : 'Thought'}</span>
        {!isShown && <span className="truncate text-faint">{lastLine(text)}</span>}
        <ChevronRight size={13} className={clsx('shrink-0', isShown && 'rotate-90')} aria-hidden />
      </button>
      {isShown && (
        <div className="mt-1 border-l border-line pl-3">
          <Markdown text={text} isOpen={isOpen} />
        </div>
      )}
    </div>
  );
}

function lastLine(text: string): string {
  const end = text.slice(-400).trimEnd();
  return end.slice(end.lastIndexOf('\n') + 1);
}

function Running({ item }: { item: TurnItem }) {
  const { notice, turn } = item;
  return (
    <div className="space-y-1 text-ui text-muted">
      {turn.state !== 'running' && (
        <p className="flex items-center gap-2" role="status">
          <Clock size={14} aria-hidden />
          {doing(item)}
          <Ago at={turn.startedAt ?? turn.createdAt} className="text-faint" />
        </p>
      )}
      {turn.stranded !== null && <p>{turn.stranded.hint}</p>}
      {notice !== null && <p className="text-look">{noticeText(notice)}</p>}
    </div>
  );
}

const ENDS: Readonly<Record<string, { readonly icon: LucideIcon; readonly word: string; readonly ink: string }>> = {
  failed: { icon: CircleX, word: 'Failed', ink: 'text-broken' },
  cancelled: { icon: Ban, word: 'Cancelled', ink: 'text-muted' },
  interrupted: { icon: CirclePause, word: 'Interrupted', ink: 'text-look' },
};

function Ended({ turn }: { turn: Turn }) {
  const end = ENDS[turn.state];
  return (
    <footer className="space-y-1 text-facts text-faint tabular-nums">
      {end !== undefined && (
        <div className="flex gap-2 text-ui">
          <end.icon size={15} className={clsx('mt-0.5 shrink-0', end.ink)} aria-hidden />
          <div className="min-w-0">
            <p>
              <span className={clsx('font-medium', end.ink)}>{end.word}</span>
              {turn.failure !== null && <span className="ml-2 text-ink">{turn.failure.message}</span>}
            </p>
            {turn.failure?.hint !== undefined && <p className="text-muted">{turn.failure.hint}</p>}
          </div>
        </div>
      )}
      <p>{factsOf(turn).join(' · ')}</p>
    </footer>
  );
}

/** In the place of a turn that is being loaded. */
function Unloaded({ n }: { n: number }) {
  return (
    <div className="mx-auto h-40 max-w-3xl px-4 pb-7" role="status" aria-busy="true" aria-label={`Loading turn ${n}`}>
      <div className="h-10 rounded-lg bg-sunken" />
      <div className="mt-3 h-4 w-3/4 rounded-sm bg-sunken" />
      <div className="mt-2 h-4 w-1/2 rounded-sm bg-sunken" />
    </div>
  );
}

/** Null: the session is not known. */
function useSessionColour(id: string | null): string | null {
  const order = useConversation(({ sessions }) => (id === null ? undefined : sessionOrders(sessions).get(id)));
  return order === undefined ? null : sessionColour(order);
}
