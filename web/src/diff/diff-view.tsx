import { clsx } from 'clsx';
import { FileDiff } from 'lucide-react';
import { type CSSProperties, memo, type ReactNode, useState } from 'react';
import { writtenOut } from '../../../src/core/input/marks.ts';
import { quotedPath } from '../../../src/core/input/visible.ts';
import { MarkBox, SafeText } from '../ui/safe-text.tsx';
import { type Colours, useColours } from './colours.ts';
import type { Diff, Line, Row } from './model.ts';
import { type Coloured, piecesOf } from './pieces.ts';

interface DiffViewProps {
  readonly path: string;
  /** Keep it between renders: what is opened and coloured belongs to its rows. */
  readonly diff: Diff;
  /** What is to be known beside the counts: `new file`. */
  readonly note?: string | null;
  /** Buttons at the end of the header. */
  readonly actions?: ReactNode;
  /** The path and the counts are shown elsewhere. */
  readonly isBare?: boolean;
}

/** More rows are shown on request: each is laid out when it is rendered. */
const MOST_ROWS = 400;
const NEXT_ROWS = 2_000;

/** The changes of one file: what is the same, what went and what came. Lines wrap, so that nothing is hidden at the side. */
export function DiffView({ path, diff, note = null, actions, isBare = false }: DiffViewProps) {
  const [isWhole, setWhole] = useState(false);
  const [opened, open] = useState<ReadonlySet<Row>>(new Set());
  const [most, setMost] = useState(MOST_ROWS);
  const colours = useColours(path, diff);
  const rows = diff.rows.flatMap((row): readonly Row[] => {
    const isOpen = row.kind === 'fold' && row.rows !== null && (isWhole || opened.has(row));
    return isOpen ? (row.rows ?? []) : [row];
  });
  const canOpen = diff.rows.some((row) => row.kind === 'fold' && row.rows !== null);
  return (
    <section
      aria-label={`Changes in ${writtenOut(inOneLine(path), 'code')}`}
      className="@container overflow-hidden rounded-md border border-line-strong bg-canvas"
      style={{ '--digits': digitsOf(diff) } as CSSProperties}
    >
      {!isBare && (
        <header className="flex min-h-8 flex-wrap items-center gap-x-2 border-b border-line bg-sunken pr-1.5 pl-2.5">
          <FileDiff size={14} className="shrink-0 text-muted" aria-hidden />
          <Path path={path} />
          {note !== null && <span className="text-facts text-muted">{note}</span>}
          <span className="ml-auto flex items-center gap-2">
            <Counts {...diff} />
            {canOpen && (
              <HeaderButton onClick={() => setWhole(!isWhole)}>{isWhole ? 'Only changes' : 'Whole file'}</HeaderButton>
            )}
            {actions}
          </span>
        </header>
      )}
      {rows.length === 0 && <p className="px-2.5 py-1.5 text-facts text-muted">No line has changed.</p>}
      {rows.slice(0, most).map((row, index) =>
        row.kind === 'fold' ? (
          <Fold key={String(index)} count={row.count} onOpen={row.rows && (() => open(new Set([...opened, row])))} />
        ) : row.kind === 'note' ? (
          <p key={String(index)} className="px-2.5 font-mono text-facts/5 text-faint">
            {row.text}
          </p>
        ) : (
          <LineRow key={String(index)} line={row} colours={colours} />
        ),
      )}
      {rows.length > most && (
        <button
          type="button"
          onClick={() => setMost(most + NEXT_ROWS)}
          className="w-full border-t border-line px-2.5 py-1.5 text-left text-facts text-muted hover:bg-hover pointer-coarse:min-h-11"
        >
          Show more: {(rows.length - most).toLocaleString('en')} lines are left
        </button>
      )}
    </section>
  );
}

/** The folder faint, the name bold. */
export function Path({ path: raw }: { path: string }) {
  const path = inOneLine(raw);
  const at = path.lastIndexOf('/') + 1;
  return (
    <code className="min-w-0 font-mono text-facts text-faint wrap-anywhere">
      <SafeText text={path.slice(0, at)} as="code" />
      <b className="font-semibold text-ink">
        <SafeText text={path.slice(at)} as="code" />
      </b>
    </code>
  );
}

/** A name with a line break or a tab is written as git writes it. */
function inOneLine(path: string): string {
  return /[\n\t]/.test(path) ? quotedPath(path) : path;
}

/** How many lines came and went: `+2 −1`. */
export function Counts({ added, removed }: { added: number; removed: number }) {
  return (
    <span className="font-mono text-facts whitespace-nowrap tabular-nums">
      <span className="text-add">+{added}</span> <span className="text-del">−{removed}</span>
    </span>
  );
}

function HeaderButton({ onClick, children }: { onClick(): void; children: ReactNode }) {
  return (
    <button
      type="button"
      onClick={onClick}
      className="rounded-sm px-1.5 py-1 text-facts text-muted hover:bg-hover hover:text-ink pointer-coarse:min-h-11"
    >
      {children}
    </button>
  );
}

/** The width of a column of numbers, in digits. */
function digitsOf({ rows }: Diff): number {
  const largest = rows.reduce((most, row) => {
    const line = row.kind === 'fold' ? row.rows?.at(-1) : row.kind === 'note' ? undefined : row;
    return Math.max(most, line?.old ?? 0, line?.now ?? 0);
  }, 0);
  return String(largest).length;
}

const SIGNS = { same: ' ', added: '+', removed: '−' };
const LOOKS = {
  same: { row: '', sign: 'text-faint', word: '' },
  added: { row: 'bg-add-soft', sign: 'font-semibold text-add', word: 'bg-add-mark' },
  removed: { row: 'bg-del-soft', sign: 'font-semibold text-del', word: 'bg-del-mark' },
};
const NUMBER =
  'w-[calc(var(--digits)*1ch+14px)] min-w-8.5 shrink-0 pr-2 text-right text-faint tabular-nums select-none';

const LineRow = memo(function LineRow({ line, colours }: { line: Line; colours: Colours | null }) {
  const look = LOOKS[line.kind];
  const isNumbered = line.old !== null || line.now !== null;
  return (
    <div className={clsx('flex font-mono text-facts/5', look.row)}>
      {isNumbered && <span className={clsx(NUMBER, '@max-md:hidden')}>{line.old}</span>}
      {isNumbered && <span className={NUMBER}>{line.now}</span>}
      <span className={clsx('w-4.5 shrink-0 text-center whitespace-pre select-none', look.sign)}>
        {SIGNS[line.kind]}
      </span>
      <code dir="ltr" className="min-w-0 flex-1 pr-2 whitespace-pre-wrap wrap-anywhere">
        <LineText line={line} coloured={colours?.get(line) ?? []} word={look.word} />
      </code>
    </div>
  );
});

/** Of a longer line, the rest is shown on request: laying it out takes seconds. */
const LONGEST_SHOWN = 10_000;

function LineText({ line, coloured, word }: { line: Line; coloured: readonly Coloured[]; word: string }) {
  const [isAll, showAll] = useState(false);
  const text = isAll ? line.text : line.text.slice(0, LONGEST_SHOWN);
  return (
    <bdi dir="ltr">
      {piecesOf(text, coloured, line.changed).map(({ text: part, classes, isChanged, mark }, index) => {
        const key = String(index);
        const shown = mark === null ? part : <MarkBox mark={mark} />;
        const colour = classes === '' && mark === null ? shown : <span className={classes}>{shown}</span>;
        if (!isChanged) return <span key={key}>{colour}</span>;
        return (
          <mark key={key} className={clsx('rounded-[2px] text-inherit forced-colors:underline', word)}>
            {colour}
          </mark>
        );
      })}
      {text.length < line.text.length && (
        <button type="button" className="ml-1 font-sans text-muted underline" onClick={() => showAll(true)}>
          {(line.text.length - text.length).toLocaleString('en')} more characters
        </button>
      )}
    </bdi>
  );
}

/** Lines that are the same. They open where their text is known. */
function Fold({ count, onOpen }: { count: number; onOpen: (() => void) | null }) {
  const words = (
    <>
      <span className="w-[calc(var(--digits)*2ch+28px)] min-w-17 shrink-0 text-center select-none @max-md:w-[calc(var(--digits)*1ch+14px)] @max-md:min-w-8.5">
        ⋯
      </span>
      <span className="pl-4.5">
        {count.toLocaleString('en')} {count === 1 ? 'line' : 'lines'} the same
      </span>
    </>
  );
  const look = 'flex w-full border-y border-line font-mono text-facts/5 text-faint first:border-t-0 last:border-b-0';
  if (onOpen === null) return <p className={look}>{words}</p>;
  return (
    <button
      type="button"
      onClick={onOpen}
      className={clsx(look, 'items-center text-left hover:bg-hover pointer-coarse:min-h-11')}
    >
      {words}
    </button>
  );
}
