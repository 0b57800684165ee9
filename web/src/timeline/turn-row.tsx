import { clsx } from 'clsx';
import { Clock } from 'lucide-react';
import { type CSSProperties, Fragment, memo } from 'react';
import type { RecordPart, Turn } from 'throughline/client';
import { hasEnded } from '../../../src/core/turn/turn.ts';
import { isOpen, type TurnItem } from '../data/conversation/model.ts';
import { useIsShown } from '../data/conversation/shown.ts';
import { useTurn } from '../data/conversation/use-conversation.ts';
import { TurnEnd } from '../failures/turn-end.tsx';
import { Markdown } from '../markdown/markdown.tsx';
import { Questions, ToolDecisions } from '../permissions/questions.tsx';
import { laneOf, shadeOf } from '../seams/line.ts';
import { RestoringBar, SeamBar } from '../seams/seam-bar.tsx';
import { useStrand } from '../seams/strands.ts';
import { useSeam } from '../seams/use-seam.ts';
import { Ago } from '../ui/time.tsx';
import { PromptView } from './prompt.tsx';
import { RunView } from './run.tsx';
import { type Piece, piecesOf } from './runs.ts';
import type { Target } from './target.tsx';
import { Thought } from './thought.tsx';
import { doing, factsOf, noticeText } from './turn-words.ts';

/** A turn with the seam before it. It does not depend on other turns, so a stream renders one row only. */
export const TurnRow = memo(function TurnRow({ n, target }: { n: number; target: Target }) {
  const item = useTurn(n);
  const seam = useSeam(n);
  const strand = useStrand(n);
  const isShown = useIsShown(n);
  if (item === undefined) return <Unloaded n={n} />;
  if (!isShown && seam === null) return null;
  const isTarget = target?.n === n && target.kind === 'turn';
  return (
    <div className={COLUMN}>
      {item.restoring !== null && <RestoringBar restoring={item.restoring} n={n} turn={item.turn} />}
      {item.restoring === null && seam !== null && (
        <SeamBar seam={seam} n={n} isTarget={target?.n === n && target.kind === 'seam'} />
      )}
      {isShown && (
        <article
          aria-label={`Turn ${n}`}
          data-lane={laneOf(strand ?? 1)}
          data-strand={strand ?? undefined}
          data-line={lineBeside(item, n)}
          style={{ '--shade': shadeOf(strand) } as CSSProperties}
          className="on-line thread pb-6.5"
        >
          <TurnBody item={item} isTarget={isTarget} />
        </article>
      )}
    </div>
  );
});

/** The column of a conversation: nearer to the edge on a phone. */
export const COLUMN = 'mx-auto max-w-[50rem] px-6 max-sm:pr-3.5 max-sm:pl-2.5';

/** Beside a turn that was never sent there is no line, and at the first turn it begins. */
function lineBeside({ turn, restoring }: TurnItem, n: number): 'begins' | 'none' | undefined {
  const isUnsent = turn.sent === null && !turn.imported;
  if (isUnsent && (hasEnded(turn.state) || turn.state === 'queued' || restoring !== null)) return 'none';
  return n === 1 ? 'begins' : undefined;
}

function TurnBody({ item, isTarget }: { item: TurnItem; isTarget: boolean }) {
  const { turn, parts } = item;
  const pieces = piecesOf(parts);
  return (
    <>
      <span className="node" aria-hidden />
      <PromptView n={turn.n} createdAt={turn.createdAt} prompt={turn.prompt} isTarget={isTarget} />
      <div className="mt-2.5 space-y-2.5 empty:hidden">
        {pieces.map((piece, index) => (
          <Fragment key={piece.key}>
            <PieceView
              piece={piece}
              n={turn.n}
              isOpen={isOpen(item) && index === pieces.length - 1}
              isRunning={isOpen(item)}
            />
            {piece.kind === 'run' && <ToolDecisions turn={turn} tools={toolIds(piece.steps)} />}
          </Fragment>
        ))}
        <Questions turn={turn} tools={toolIds(parts)} />
        {isOpen(item) ? <Running item={item} /> : <Ended turn={turn} />}
      </div>
    </>
  );
}

function toolIds(parts: readonly RecordPart[]): string[] {
  return parts.flatMap((part) => (part.type === 'tool' ? [part.id] : []));
}

interface PieceProps {
  readonly piece: Piece;
  readonly n: number;
  /** More of it may come. */
  readonly isOpen: boolean;
  /** The turn is running. */
  readonly isRunning: boolean;
}

function PieceView({ piece, n, isOpen, isRunning }: PieceProps) {
  if (piece.kind === 'run') return <RunView steps={piece.steps} n={n} isRunning={isRunning} isLast={isOpen} />;
  if (piece.part.type === 'thought') return <Thought text={piece.part.text} n={n} isOpen={isOpen} />;
  return <Markdown text={piece.part.text} isOpen={isOpen} />;
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

function Ended({ turn }: { turn: Turn }) {
  return (
    <footer className="space-y-1 text-facts text-faint tabular-nums">
      <TurnEnd turn={turn} />
      <p className="flex flex-wrap gap-x-3">
        {factsOf(turn).map((fact) => (
          <span key={fact}>{fact}</span>
        ))}
      </p>
    </footer>
  );
}

/** In the place of a turn that is being loaded. */
function Unloaded({ n }: { n: number }) {
  const strand = useStrand(n);
  const style = { '--shade': shadeOf(strand) } as CSSProperties;
  return (
    <div className={clsx(COLUMN, 'h-40')} role="status" aria-busy="true" aria-label={`Loading turn ${n}`}>
      <div className="on-line thread h-full pb-6.5" data-lane={laneOf(strand ?? 1)} style={style}>
        <div className="h-10 rounded-lg bg-prompt" />
        <div className="mt-3 h-4 w-3/4 rounded-sm bg-sunken" />
        <div className="mt-2 h-4 w-1/2 rounded-sm bg-sunken" />
      </div>
    </div>
  );
}
