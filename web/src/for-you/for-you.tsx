import { type ReactNode, useRef, useState } from 'react';
import type { Conversation, Task } from 'throughline/client';
import { Link } from 'wouter';
import { useList } from '../data/list.ts';
import { markSeen } from '../data/seen.ts';
import { useMay } from '../data/session.ts';
import { projectAt, projectOf } from '../rail/groups.ts';
import { useActions } from '../shell/actions.ts';
import { TaskTries, triesText } from '../tasks/task-marks.tsx';
import { Keys } from '../ui/keys.tsx';
import { Empty, ErrorNote, Skeleton } from '../ui/notes.tsx';
import { Glyph, type GlyphName, nameOf } from '../ui/state.tsx';
import { Ago } from '../ui/time.tsx';
import { NeedRow } from './need-row.tsx';
import { isOpen } from './sections.ts';
import { dismiss, leaveTask, markAllSeen, useForYou } from './use-for-you.ts';

/** A line of this view: it can be opened, and some can be put aside. */
interface Entry {
  readonly key: string;
  readonly href: string;
  /** Null: only an answer ends it. */
  readonly done: (() => void) | null;
}

/** `/`: what needs somebody, what was answered, the tasks, and what comes later. */
export function ForYou() {
  const { phase, error, known } = useList();
  const { needs, answered, tasks, later } = useForYou();
  const entries: Entry[] = [
    ...needs.map((need) => ({
      key: need.id,
      href: need.kind === 'task' ? `/tasks/${need.id}` : `/c/${need.id}`,
      done:
        need.kind === 'unrestored' || (need.kind === 'task' && need.task.state === 'failed')
          ? () => dismiss(need)
          : null,
    })),
    ...answered.map((row) => ({ key: row.id, href: `/c/${row.id}`, done: () => markSeen(row) })),
    ...tasks.map((task) => ({
      ...{ key: task.id, href: `/tasks/${task.id}` },
      done: isOpen(task) ? null : () => leaveTask(task),
    })),
    ...later.map(({ id }) => ({ key: id, href: `/c/${id}`, done: null })),
  ];
  const { current, box } = useKeys(entries);
  const movedAt = useChangedAt(needs.map(({ id }) => id).join());
  if (phase === 'loading') return <Skeleton lines={8} />;
  return (
    <div ref={box} className="min-h-0 flex-1 overflow-y-auto">
      <div className="mx-auto w-full max-w-[860px] px-6 pt-5.5 pb-16 max-md:px-2.5">
        <Heading needs={needs.length} hasKeys={entries.length > 0} />
        {phase === 'failed' && <ErrorNote error={error} cli="throughline list" />}
        {phase === 'ready' && known.size === 0 && <Nothing />}
        <Section title="Needs you" count={needs.length} isLook>
          {needs.map((need) => (
            <NeedRow key={need.id} {...{ need, movedAt }} isCurrent={current === need.id} />
          ))}
        </Section>
        <Section title="Answered since you looked" count={answered.length}>
          {answered.map((row) => (
            <ConversationLine key={row.id} row={row} isCurrent={current === row.id} />
          ))}
        </Section>
        <Section title="Tasks" count={tasksWords(tasks)}>
          {tasks.map((task) => (
            <TaskLine key={task.id} task={task} isCurrent={current === task.id} />
          ))}
        </Section>
        <Section title="Later" count={later.length}>
          {later.map((row) => (
            <ConversationLine key={row.id} row={row} isCurrent={current === row.id} />
          ))}
        </Section>
      </div>
    </div>
  );
}

/** When `key` last changed, in the time of `performance.now()`. */
function useChangedAt(key: string): number {
  const [last, setLast] = useState({ key, at: 0 });
  if (last.key !== key) setLast({ key, at: performance.now() });
  return last.at;
}

/** J and K move the focus, so Enter opens; E puts aside. */
function useKeys(entries: readonly Entry[]) {
  const [moved, setMoved] = useState<string | null>(null);
  const box = useRef<HTMLDivElement>(null);
  const at = entries.findIndex(({ key }) => key === moved);
  const moveTo = (index: number) => {
    const next = entries[Math.min(Math.max(index, 0), entries.length - 1)];
    if (next === undefined) return;
    setMoved(next.key);
    box.current?.querySelector<HTMLElement>(`a[href="${next.href}"]`)?.focus();
  };
  const finish = () => {
    const done = entries[at]?.done ?? null;
    if (done === null) return;
    moveTo(at + 1 < entries.length ? at + 1 : at - 1);
    done();
  };
  const group = 'For you';
  useActions([
    { id: 'for-you.next', title: 'Next line', group, keys: 'j', run: () => moveTo(at + 1) },
    { id: 'for-you.previous', title: 'Previous line', group, keys: 'k', run: () => moveTo(at < 0 ? 0 : at - 1) },
    { id: 'for-you.done', title: 'Done with the line', group, keys: 'e', run: finish },
    { id: 'for-you.seen', title: 'Mark everything as seen', group, run: markAllSeen },
  ]);
  return { current: entries[at]?.key ?? null, box };
}

function Heading({ needs, hasKeys }: { needs: number; hasKeys: boolean }) {
  const words = needs === 0 ? 'Nothing needs you.' : needs === 1 ? '1 thing needs you.' : `${needs} things need you.`;
  return (
    <header className="flex min-h-8 flex-wrap items-center gap-x-3">
      <h1 className="text-view font-semibold tracking-tight">For you</h1>
      <p className={needs === 0 ? 'flex-1 text-muted' : 'sr-only'} role="status">
        {words}
      </p>
      <span className="flex-1" />
      {hasKeys && (
        <p className="flex items-center gap-1.5 text-facts text-faint pointer-coarse:hidden">
          <Keys keys="J K" /> move · <Keys keys="Enter" /> opens · <Keys keys="E" /> done
        </p>
      )}
    </header>
  );
}

/** For somebody who opens the page for the first time. */
function Nothing() {
  const mayPrompt = useMay('prompt');
  return (
    <Empty title="No conversations yet.">
      <p>
        A conversation with an agent stays here when the agent’s session is lost: Throughline restores what was said
        into the next session, and says how.
      </p>
      {mayPrompt && (
        <Link href="/new" className="touch text-ink underline decoration-control underline-offset-3">
          Start a conversation
        </Link>
      )}
    </Empty>
  );
}

interface SectionProps {
  readonly title: string;
  readonly count: number | string;
  readonly isLook?: boolean;
  readonly children: readonly ReactNode[];
}

function Section({ title, count, isLook = false, children }: SectionProps) {
  if (children.length === 0) return null;
  return (
    <section aria-label={title}>
      <h2 className="mt-4.5 mb-1.5 flex items-baseline gap-2 font-semibold">
        <span className={isLook ? 'text-look' : ''}>{title}</span>
        <span className="font-normal text-faint tabular-nums">{count}</span>
      </h2>
      <ul className="divide-y divide-line overflow-hidden rounded-lg border border-line-strong bg-raised">
        {children}
      </ul>
    </section>
  );
}

interface LineProps {
  readonly href: string;
  readonly glyph: GlyphName;
  readonly word?: string;
  readonly title: string;
  readonly project: string | undefined;
  readonly side: ReactNode;
  readonly isCurrent: boolean;
  readonly children?: ReactNode;
}

/** Glyph and title, what is known at the right, and a second line. The whole line is a link. */
function Line({ href, glyph, word, title, project, side, isCurrent, children }: LineProps) {
  return (
    <li className={isCurrent ? 'shadow-[inset_3px_0_0_var(--color-ink)]' : ''}>
      <Link
        href={href}
        className="grid min-h-9 grid-cols-[0.875rem_minmax(0,1fr)_auto] content-center items-center gap-x-3 px-3 py-2 -outline-offset-2 hover:bg-hover pointer-coarse:min-h-11"
      >
        <Glyph name={glyph} {...(word !== undefined && { label: word })} />
        <span className="truncate">
          <b className="font-semibold">{title}</b> <span className="text-faint">{project}</span>
        </span>
        <span className="text-right text-facts text-faint tabular-nums">{side}</span>
        {children !== undefined && <span className="col-span-2 col-start-2 min-w-0 text-muted">{children}</span>}
      </Link>
    </li>
  );
}

const ENDS: Readonly<Record<string, { glyph: GlyphName; word: string }>> = {
  failed: { glyph: 'failed', word: 'Failed' },
  interrupted: { glyph: 'failed', word: 'Interrupted' },
  queued: { glyph: 'waiting', word: 'Waiting' },
};

function ConversationLine({ row, isCurrent }: { row: Conversation; isCurrent: boolean }) {
  const end = ENDS[row.state] ?? { glyph: 'new', word: 'New answer' };
  const note = row.stranded?.message ?? row.delayed?.message;
  return (
    <Line
      {...{ isCurrent, ...end, href: `/c/${row.id}`, title: nameOf(row), project: projectOf(row)?.name }}
      side={<Ago at={row.updatedAt} />}
    >
      {note}
    </Line>
  );
}

function tasksWords(tasks: readonly Task[]): string {
  const working = tasks.filter(isOpen).length;
  const passed = tasks.length - working;
  return [working > 0 && `${working} working`, passed > 0 && `${passed} passed`].filter(Boolean).join(', ');
}

function TaskLine({ task, isCurrent }: { task: Task; isCurrent: boolean }) {
  const { id, name, goal, gate, state, progress } = task;
  const glyph = state === 'done' ? 'done' : state === 'running' ? 'working' : 'waiting';
  return (
    <Line
      {...{ isCurrent, glyph, href: `/tasks/${id}`, title: name ?? goal, project: projectAt(task.cwd)?.name }}
      side={state === 'done' ? `passed at try ${progress.iteration}` : triesText(task)}
    >
      {state !== 'done' && (
        <span className="flex min-w-0 items-center gap-2">
          {gate !== null && 'command' in gate && (
            <span className="min-w-0 truncate">
              until <code className="font-mono text-facts text-ink">{gate.command}</code> passes
            </span>
          )}
          <TaskTries task={task} />
          {progress.lastGate !== null && (
            <span className="min-w-0 truncate text-faint">
              last: {progress.lastGate.lastLine || progress.lastGate.summary}
            </span>
          )}
        </span>
      )}
    </Line>
  );
}
