import { BellOff, BellRing, Check, FlameKindling, ListChecks, Unlink } from 'lucide-react';
import { type ReactNode, useState } from 'react';
import type { Conversation, Task } from 'throughline/client';
import { Link } from 'wouter';
import { useList } from '../data/list.ts';
import { useNeeds } from '../data/needs.ts';
import { firstSeen, keepSeen } from '../data/seen.ts';
import { useClient, useMay } from '../data/session.ts';
import { DecisionLine, PermissionCard } from '../permissions/card.tsx';
import { useChangedAt, useJustEnded } from '../permissions/cards.tsx';
import { type Action, useActions } from '../shell/actions.ts';
import { Button, IconButton } from '../ui/button.tsx';
import { Empty, ErrorNote, Skeleton } from '../ui/notes.tsx';
import { say, sayError } from '../ui/say.ts';
import { nameOf, StateMark } from '../ui/state.tsx';
import { Ago, count } from '../ui/time.tsx';
import { useNotifying } from './notify.ts';
import type { Need } from './sections.ts';
import { leaveUnrestored, useInbox } from './use-inbox.ts';

/** A line of the inbox. The whole line is a link. */
const LINE =
  'flex min-h-11 min-w-0 flex-1 items-center gap-3 rounded-md px-2 py-1.5 -mx-2 text-ui hover:bg-hover pointer-coarse:min-h-13';

function ConversationLine({
  row,
  note,
  action,
}: {
  row: Conversation;
  note?: string | null | undefined;
  action?: ReactNode;
}) {
  const tokens = row.usage.inputTokens + row.usage.outputTokens;
  return (
    <li className="flex items-center gap-1">
      <Link href={`/c/${row.id}`} className={LINE}>
        <StateMark state={row.state} stranded={row.stranded} className="w-24 text-facts max-sm:hidden" />
        <span className="min-w-0 flex-1">
          <span className="block truncate">{nameOf(row)}</span>
          <span className="flex gap-2 text-facts text-muted sm:hidden">
            <StateMark state={row.state} stranded={row.stranded} />
            {row.lastAgent ?? ''}
          </span>
          {note && (
            <span className="line-clamp-2 text-ui text-look wrap-anywhere" title={note}>
              {note}
            </span>
          )}
        </span>
        <span className="max-w-32 truncate text-facts text-muted max-sm:hidden">{row.lastAgent ?? ''}</span>
        <span className="w-12 text-right text-facts text-faint tabular-nums max-sm:hidden">
          {tokens > 0 ? count(tokens) : ''}
        </span>
        <Ago at={row.updatedAt} className="w-12 text-right text-facts text-faint tabular-nums" />
      </Link>
      {/* The same width in every section, so that the columns are aligned. */}
      <span className="flex w-24 shrink-0 justify-end max-sm:w-auto max-sm:empty:hidden">{action}</span>
    </li>
  );
}

/** How many idle conversations are shown here; the rail has all of them. */
const MOST_RESTING = 12;

/** `/`: what needs somebody, what is running, what has changed, and what is idle. */
export function Inbox() {
  const { phase, error, known } = useList();
  const { needs, running, changed, resting } = useInbox();

  const movedAt = useChangedAt(needs.map(keyOf).join());
  const permissions = useNeeds((state) => state.permissions);
  const ended = useJustEnded(permissions).filter(({ id }) => !permissions.some((one) => one.id === id));
  useActions(ACTIONS);
  if (phase === 'loading') return <Skeleton lines={8} />;
  if (phase === 'failed') {
    return (
      <div className="mx-auto w-full max-w-3xl p-4">
        <ErrorNote error={error} cli="throughline list" />
      </div>
    );
  }
  return (
    <div className="min-h-0 flex-1 overflow-y-auto">
      <div className="mx-auto w-full max-w-3xl space-y-7 px-4 pt-5 pb-16 sm:px-6">
        <Heading needs={needs.length} running={running.length} />
        {known.size === 0 && <Nothing />}
        {needs.length + ended.length > 0 && (
          <Section title="Needs you" count={needs.length}>
            {ended.map((permission) => (
              <li key={permission.id} className="py-2">
                <DecisionLine permission={permission} />
              </li>
            ))}
            {needs.map((need) => (
              <li key={keyOf(need)}>
                <NeedLine need={need} movedAt={movedAt} />
              </li>
            ))}
          </Section>
        )}
        {running.length > 0 && (
          <Section title="Running" count={running.length}>
            {running.map((row) => (
              <ConversationLine
                key={row.id}
                row={row}
                note={row.delayed && `${row.delayed.message} ${row.delayed.hint}`}
              />
            ))}
          </Section>
        )}
        {changed.length > 0 && (
          <Section title="Changed since you looked" count={changed.length} action={<SeenButton />}>
            {changed.map((row) => (
              <ConversationLine key={row.id} row={row} note={row.stranded?.message} />
            ))}
          </Section>
        )}
        {resting.length > 0 && <Resting rows={resting.slice(0, MOST_RESTING)} />}
      </div>
    </div>
  );
}

function Resting({ rows }: { rows: readonly Conversation[] }) {
  return (
    <Section
      title="Idle"
      hint="Their context is stored here, even if the agent’s session is gone. The next prompt restores it; “Restore” does it now."
    >
      {rows.map((row) => (
        <ConversationLine key={row.id} row={row} note={row.stranded?.message} action={<RestoreButton row={row} />} />
      ))}
    </Section>
  );
}

const markAllSeen = () => keepSeen(firstSeen(useList.getState().known.values()));

const ACTIONS: readonly Action[] = [
  { id: 'inbox.seen', title: 'Mark everything as seen', group: 'Inbox', keys: 'e', run: markAllSeen },
];

function Heading({ needs, running }: { needs: number; running: number }) {
  const words = needs === 0 ? 'Nothing needs you.' : needs === 1 ? '1 thing needs you.' : `${needs} things need you.`;
  const runs =
    running === 0 ? '' : running === 1 ? ' 1 conversation is running.' : ` ${running} conversations are running.`;
  return (
    <header className="flex items-start gap-3">
      <div className="min-w-0 flex-1">
        <h1 className="text-seam font-semibold">Inbox</h1>
        <p className="text-ui text-muted" role="status">
          {words}
          {runs}
        </p>
      </div>
      <NotifyButton />
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
        into the next session, and shows a receipt of how.
      </p>
      {mayPrompt && (
        <Link href="/new" className="touch text-ink underline decoration-control underline-offset-3 underline-offset-2">
          Start a conversation
        </Link>
      )}
    </Empty>
  );
}

function Section(props: { title: string; count?: number; hint?: string; action?: ReactNode; children: ReactNode }) {
  const { title, count, hint, action, children } = props;
  return (
    <section aria-label={title}>
      <div className="mb-1 flex min-h-7 items-center gap-2">
        <h2 className="text-ui font-semibold">{title}</h2>
        {count !== undefined && <span className="text-ui text-faint tabular-nums">{count}</span>}
        <span className="flex-1" />
        {action}
      </div>
      {hint !== undefined && <p className="mb-1 text-ui text-muted">{hint}</p>}
      <ul className="divide-y divide-line border-y border-line">{children}</ul>
    </section>
  );
}

function keyOf(need: Need): string {
  return need.kind === 'permission' ? need.permission.id : need.kind === 'task' ? need.task.id : need.conversation.id;
}

function NeedLine({ need, movedAt }: { need: Need; movedAt: number }) {
  if (need.kind === 'task') return <TaskLine task={need.task} />;
  if (need.kind === 'unrestored') return <UnrestoredLine row={need.conversation} />;
  if (need.kind === 'stranded') return <StrandedLine row={need.conversation} />;
  const { permission, conversation } = need;
  return (
    <div className="space-y-1 py-2">
      <Link
        href={`/c/${permission.conversationId}`}
        className="flex min-h-6 items-center gap-2 text-ui hover:underline pointer-coarse:min-h-11"
      >
        <span className="min-w-0 truncate font-medium">
          {conversation === null ? 'A conversation' : nameOf(conversation)}
        </span>
        <span className="shrink-0 text-muted">{conversation?.lastAgent ?? ''}</span>
      </Link>
      <PermissionCard permission={permission} agent={conversation?.lastAgent ?? 'The agent'} movedAt={movedAt} />
    </div>
  );
}

function TaskLine({ task }: { task: Task }) {
  return (
    <Link href={`/tasks/${task.id}`} className={LINE}>
      <span className="inline-flex w-24 shrink-0 items-center gap-1 text-facts text-accent max-sm:w-auto">
        <ListChecks size={13} aria-hidden />
        Task asks
      </span>
      <span className="min-w-0 flex-1">
        <span className="block truncate font-medium">{task.name ?? task.goal}</span>
        {task.progress.decision && (
          <span className="line-clamp-2 text-ui text-muted">{task.progress.decision.reason}</span>
        )}
      </span>
      <Ago at={task.startedAt ?? task.createdAt} className="text-facts text-faint tabular-nums" />
    </Link>
  );
}

function UnrestoredLine({ row }: { row: Conversation }) {
  return (
    <div className="flex items-center gap-1">
      <Link href={`/c/${row.id}`} className={LINE}>
        <span className="flex min-w-0 flex-1 items-start gap-x-3 gap-y-0.5 max-sm:flex-col">
          <span className="inline-flex w-24 shrink-0 items-center gap-1 pt-0.5 text-facts text-broken">
            <Unlink size={13} aria-hidden />
            Not restored
          </span>
          <span className="min-w-0 flex-1">
            <span className="block truncate font-medium">{nameOf(row)}</span>
            <span className="block text-ui text-muted">
              The last prompt was not sent: its context could not be restored. Open it to see why, and what you can do.
            </span>
          </span>
        </span>
        <Ago at={row.updatedAt} className="shrink-0 text-facts text-faint tabular-nums" />
      </Link>
      <IconButton label="Dismiss" small onClick={() => leaveUnrestored(row)}>
        <Check size={15} />
      </IconButton>
    </div>
  );
}

function StrandedLine({ row }: { row: Conversation }) {
  return (
    <Link href={`/c/${row.id}`} className={LINE}>
      <StateMark state={row.state} stranded={row.stranded} className="w-24 text-facts max-sm:w-auto" />
      <span className="min-w-0 flex-1">
        <span className="block truncate font-medium">{nameOf(row)}</span>
        <span className="block text-ui text-muted wrap-anywhere">
          {row.stranded?.message} {row.stranded?.hint}
        </span>
      </span>
      <Ago at={row.updatedAt} className="text-facts text-faint tabular-nums" />
    </Link>
  );
}

function SeenButton() {
  return (
    <Button small look="quiet" onClick={markAllSeen}>
      <Check size={14} aria-hidden />
      Mark as seen
    </Button>
  );
}

/** Restores the session before a prompt, and shows the result. */
function RestoreButton({ row }: { row: Conversation }) {
  const tl = useClient();
  const mayPrompt = useMay('prompt');
  const [busy, setBusy] = useState(false);
  if (!mayPrompt || row.driver !== 'worker' || row.stranded !== null) return null;
  const restore = async () => {
    setBusy(true);
    try {
      const receipt = await tl.engine.warm(row.id);
      const name = nameOf(row);
      if (receipt === null) say(`${name} is in use, or no slot is free. The next prompt restores its context.`);
      else
        say(
          `${name} is ready: ${receipt.rung}, ${receipt.carried} turns carried, ${receipt.modelCalls} model calls.`,
          'good',
        );
    } catch (error) {
      sayError(error);
    } finally {
      setBusy(false);
    }
  };
  return (
    <Button small look="quiet" disabled={busy} onClick={() => void restore()}>
      <FlameKindling size={14} aria-hidden />
      {busy ? 'Restoring…' : 'Restore'}
    </Button>
  );
}

function NotifyButton() {
  const { isOn, isPossible, turnOn, turnOff } = useNotifying();
  if (!isPossible) return null;
  return isOn ? (
    <IconButton label="Notifications are on: turn them off" onClick={turnOff}>
      <BellRing size={16} />
    </IconButton>
  ) : (
    <IconButton label="Notify me when something needs me" onClick={() => void turnOn()}>
      <BellOff size={16} />
    </IconButton>
  );
}
