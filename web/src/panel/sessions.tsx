import { useVirtualizer } from '@tanstack/react-virtual';
import { useEffect, useMemo, useRef, useState } from 'react';
import type { Sandbox } from 'throughline/client';
import { useLocation } from 'wouter';
import type { ReceiptRung } from '../../../src/core/restore/restore-settings.ts';
import { useOutline } from '../data/conversation/outline.ts';
import { useConversation, useConversationStore } from '../data/conversation/use-conversation.ts';
import { useList } from '../data/list.ts';
import { useClient } from '../data/session.ts';
import { SANDBOX_STATES, sizeOf } from '../health/sandbox-words.ts';
import { sessionColour } from '../ui/colours.ts';
import { Empty, ErrorNote, Skeleton } from '../ui/notes.tsx';
import { shellWord } from '../ui/shell-word.ts';
import { type Fork, forksOf, type LineageRow, lineageRows, type Span, spansOf } from './lanes.ts';

const ROW = 48;
const LANE = 18;
const MOST_LANES = 6;

/** Which session answered which turns, as a graph. A click on a node opens its first turn. */
export function Lineage() {
  const { id } = useConversationStore();
  const { turns, error } = useOutline();
  const sessions = useConversation((state) => state.sessions);
  const conversation = useConversation((state) => state.conversation);
  const others = useList((state) => state.known);
  const rows = useMemo(() => {
    if (turns === null || conversation === null) return null;
    return lineageRows(spansOf(turns, sessions), forksOf(conversation, [...others.values()]));
  }, [turns, sessions, conversation, others]);
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

function Rows({ rows }: { rows: readonly LineageRow[] }) {
  const scroller = useRef<HTMLDivElement>(null);
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW,
    overscan: 12,
  });
  const lanes = Math.min(MOST_LANES, Math.max(...rows.map(({ lane, through }) => Math.max(lane, ...through))) + 1);
  return (
    <div ref={scroller} className="h-full overflow-y-auto py-2">
      <ol className="relative" style={{ height: virtual.getTotalSize() }}>
        {virtual.getVirtualItems().map(({ index, start }) => {
          const row = rows[index];
          if (row === undefined) return null;
          return (
            <li key={index} className="absolute inset-x-0" style={{ top: start, height: ROW }}>
              <Row row={row} next={rows[index + 1]} lanes={lanes} />
            </li>
          );
        })}
      </ol>
    </div>
  );
}

function Row({ row, next, lanes }: { row: LineageRow; next: LineageRow | undefined; lanes: number }) {
  const [, go] = useLocation();
  const { item } = row;
  const target = item.kind === 'span' ? `/turn/${item.from}` : `~/c/${item.conversationId}`;
  return (
    <button
      type="button"
      onClick={() => go(target)}
      className="flex h-full w-full items-center gap-2 px-3 text-left hover:bg-hover"
    >
      <Graph row={row} next={next} lanes={lanes} />
      {item.kind === 'span' ? <SpanText span={item} /> : <ForkText fork={item} />}
      <span className="sr-only">{item.kind === 'span' ? `: go to turn ${item.from}` : ': open it'}</span>
    </button>
  );
}

function Graph({ row, next, lanes }: { row: LineageRow; next: LineageRow | undefined; lanes: number }) {
  const { item, lane, from, through } = row;
  const x = (each: number) => Math.min(each, lanes - 1) * LANE + LANE / 2;
  const middle = ROW / 2;
  const hasSession = item.kind === 'span' && item.session !== null;
  const colour = hasSession ? sessionColour(item.order) : 'var(--color-line-strong)';
  const goesOn = next !== undefined && item.kind !== 'child';
  const line = 'var(--color-line-strong)';
  return (
    <svg width={lanes * LANE} height={ROW} className="shrink-0" aria-hidden="true">
      {through.map((each) => (
        <line
          key={each}
          x1={x(each)}
          x2={x(each)}
          y1={0}
          y2={ROW}
          stroke={line}
          strokeWidth={1.5}
          strokeDasharray="2 3"
        />
      ))}
      {from !== null && (
        <path
          d={`M${x(from)} 0 C ${x(from)} ${middle * 0.6}, ${x(lane)} ${middle * 0.4}, ${x(lane)} ${middle}`}
          fill="none"
          stroke={line}
          strokeWidth={1.5}
        />
      )}
      {goesOn && <line x1={x(lane)} x2={x(lane)} y1={middle} y2={ROW} stroke={line} strokeWidth={1.5} />}
      {item.kind === 'span' ? (
        <circle cx={x(lane)} cy={middle} r={5} fill={colour} />
      ) : (
        <rect x={x(lane) - 4.5} y={middle - 4.5} width={9} height={9} fill="none" stroke={colour} strokeWidth={2} />
      )}
    </svg>
  );
}

function SpanText({ span }: { span: Span }) {
  const { agent, session } = span;
  return (
    <span className="min-w-0 flex-1 leading-tight">
      <span className="flex items-baseline justify-between gap-2">
        <span className="truncate text-ui">{turnsText(span)}</span>
        <span className="shrink-0 text-facts text-faint">{agent}</span>
      </span>
      <span className="block truncate text-facts text-muted">
        {HOW[span.rung ?? 'none']}
        {session !== null && <span className="font-mono"> · {session.id.slice(0, 8)}</span>}
        {session?.state === 'live' && ' · live'}
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

/** How a session got its context, in a word or two. */
const HOW: Readonly<Record<ReceiptRung, string>> = {
  live: 'continued',
  resume: 'resumed',
  rehydrate: 'rebuilt in its storage',
  transcript: 'rebuilt by transcript',
  replay: 'replayed',
  new: 'new session',
  fresh: 'fresh, without the history',
  none: 'no session',
};

function turnsText({ from, to }: Span): string {
  return from === to ? `Turn ${from}` : `Turns ${from}–${to}`;
}
