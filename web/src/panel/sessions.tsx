import { useVirtualizer } from '@tanstack/react-virtual';
import { useEffect, useMemo, useRef, useState } from 'react';
import type { Sandbox } from 'throughline/client';
import { useLocation } from 'wouter';
import { useOutline } from '../data/conversation/outline.ts';
import { useConversation, useConversationStore } from '../data/conversation/use-conversation.ts';
import { useList } from '../data/list.ts';
import { useClient } from '../data/session.ts';
import { SANDBOX_STATES, sizeOf } from '../health/sandbox-words.ts';
import { laneOf, shadeOf } from '../seams/line.ts';
import { agentName } from '../ui/agent-name.ts';
import { Empty, ErrorNote, Skeleton } from '../ui/notes.tsx';
import { shellWord } from '../ui/shell-word.ts';
import { type Fork, forksOf, type Span, spansOf, withForks } from './spans.ts';

const ROW = 48;

/** The strands of the line: which turns each has, and how it got its context. A click opens its first turn. */
export function Sessions() {
  const { id } = useConversationStore();
  const { turns, error } = useOutline();
  const conversation = useConversation((state) => state.conversation);
  const others = useList((state) => state.known);
  const rows = useMemo(() => {
    if (turns === null || conversation === null) return null;
    return withForks(spansOf(turns), forksOf(conversation, [...others.values()]));
  }, [turns, conversation, others]);
  if (error !== null)
    return <ErrorNote error={error} cli={`throughline sessions ${shellWord(conversation?.key ?? id)}`} />;
  if (rows === null) return <Skeleton lines={6} />;
  if (rows.length === 0) return <Empty title="No session yet.">The first prompt opens one.</Empty>;
  return (
    <div className="flex h-full flex-col">
      <Where id={id} />
      <div className="min-h-0 flex-1">
        <Rows rows={rows} />
      </div>
    </div>
  );
}

/** The sandbox that the conversation works in. */
function Where({ id }: { id: string }) {
  const { engine } = useClient();
  const [sandbox, setSandbox] = useState<Sandbox | null>(null);
  useEffect(() => {
    let isCurrent = true;
    const read = async () => {
      const { sandboxId, sessionId } = await engine.sandboxes.of(id);
      // It was never opened.
      if (sessionId === null) return;
      const { sandbox: shown } = await engine.sandboxes.show(sandboxId);
      if (isCurrent) setSandbox(shown);
    };
    // The lineage is complete without it, and the health view shows problems of sandboxes.
    read().catch(() => isCurrent && setSandbox(null));
    return () => {
      isCurrent = false;
    };
  }, [engine, id]);
  if (sandbox === null) return null;
  return (
    <p className="shrink-0 border-b border-line px-4 py-2 text-facts text-muted wrap-anywhere" title={sandbox.id}>
      {whereOf(sandbox)}
    </p>
  );
}

function whereOf(sandbox: Sandbox): string {
  const { name, state, conversations } = sandbox;
  const where = name === null ? 'Works in its own sandbox' : `Works in the sandbox ${name}`;
  const shared = conversations > 1 ? `shared by ${conversations} conversations` : null;
  return [where, SANDBOX_STATES[state], sizeOf(sandbox), shared].filter((word) => word !== null).join(' · ');
}

function Rows({ rows }: { rows: readonly (Span | Fork)[] }) {
  const scroller = useRef<HTMLDivElement>(null);
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW,
    overscan: 12,
  });
  const strandOf = (item: Span | Fork | undefined) => (item?.kind === 'span' ? item.strand : null);
  return (
    <div ref={scroller} className="h-full overflow-y-auto py-2">
      <ol className="relative" style={{ height: virtual.getTotalSize() }}>
        {virtual.getVirtualItems().map(({ index, start }) => {
          const item = rows[index];
          if (item === undefined) return null;
          // A fork is drawn beside the strand that it leaves.
          const above = rows.slice(0, index).findLast(({ kind }) => kind === 'span');
          const isLast = !rows.slice(index + 1).some(({ kind }) => kind === 'span');
          return (
            <li key={index} className="absolute inset-x-0" style={{ top: start, height: ROW }}>
              <Row item={item} above={strandOf(above)} isLast={isLast} />
            </li>
          );
        })}
      </ol>
    </div>
  );
}

interface RowProps {
  readonly item: Span | Fork;
  /** The strand above; null: there is none. */
  readonly above: number | null;
  readonly isLast: boolean;
}

function Row({ item, above, isLast }: RowProps) {
  const [, go] = useLocation();
  const target = item.kind === 'span' ? `/turn/${item.from}` : `~/c/${item.conversationId}`;
  return (
    <button
      type="button"
      onClick={() => go(target, { state: Date.now() })}
      className="flex h-full w-full items-center gap-2 px-3 text-left hover:bg-hover"
    >
      <Graph item={item} above={above} isLast={isLast} />
      {item.kind === 'span' ? <SpanText span={item} /> : <ForkText fork={item} />}
      <span className="sr-only">{item.kind === 'span' ? `: go to turn ${item.from}` : ': open it'}</span>
    </button>
  );
}

const LANES = { left: 8, right: 18 } as const;

function Graph({ item, above, isLast }: RowProps) {
  const middle = ROW / 2;
  const strand = item.kind === 'span' ? item.strand : above;
  const x = LANES[laneOf(strand ?? 1)];
  const from = LANES[laneOf(above ?? 1)];
  const colour = shadeOf(strand);
  return (
    <svg width={28} height={ROW} className="shrink-0" fill="none" strokeWidth={2.5} aria-hidden="true">
      {above !== null && (
        <path d={`M${from} 0C${from} ${middle * 0.6} ${x} ${middle * 0.3} ${x} ${middle}`} stroke={shadeOf(above)} />
      )}
      {!isLast && strand !== null && <path d={`M${x} ${middle}V${ROW}`} stroke={colour} />}
      {item.kind === 'span' ? (
        <circle cx={x} cy={middle} r={5} stroke={colour} className="fill-canvas" />
      ) : (
        <rect x={x - 4} y={middle - 4} width={8} height={8} stroke="var(--color-control)" className="fill-canvas" />
      )}
    </svg>
  );
}

function SpanText({ span }: { span: Span }) {
  const isLive = useConversation(({ sessions }) => sessions.find(({ id }) => id === span.sessionId)?.state === 'live');
  return (
    <span className="min-w-0 flex-1 leading-tight">
      <span className="flex items-baseline justify-between gap-2">
        <span className="truncate text-ui">{turnsText(span)}</span>
        <span className="shrink-0 text-facts text-faint">{agentName(span.agent)}</span>
      </span>
      <span className="block truncate text-facts text-muted">
        {HOW[span.how]}
        {span.sessionId !== null && <span className="font-mono"> · {span.sessionId.slice(0, 8)}</span>}
        {isLive && ' · live'}
      </span>
    </span>
  );
}

function ForkText({ fork }: { fork: Fork }) {
  return (
    <span className="min-w-0 flex-1 leading-tight">
      <span className="block truncate text-ui">{fork.title}</span>
      <span className="block text-facts text-muted">
        {fork.kind === 'parent' ? `forked from it after turn ${fork.n}` : `fork after turn ${fork.n}`}
      </span>
    </span>
  );
}

/** How a strand got its context, in a word or two. */
const HOW: Readonly<Record<Span['how'], string>> = {
  live: 'its own session',
  resume: 'its own session, reopened',
  rehydrate: 'file rebuilt',
  transcript: 'told what was said',
  replay: 'asked the prompts again',
  new: 'first session',
  fresh: 'without the history',
  none: 'no session',
  imported: 'brought in',
  handoff: 'took over in its own session',
};

function turnsText({ from, to }: Span): string {
  return from === to ? `Turn ${from}` : `Turns ${from}–${to}`;
}
