import { clsx } from 'clsx';
import { TriangleAlert } from 'lucide-react';
import { useEffect, useRef, useState } from 'react';
import type { Permission, PermissionOption } from 'throughline/client';
import { Link } from 'wouter';
import { answerPermission } from '../data/permissions.ts';
import { useClient, useMay } from '../data/session.ts';
import { INERT_MS, mayAnswer, type Press } from '../permissions/asked.ts';
import { projectAt, projectOf } from '../rail/groups.ts';
import { Button } from '../ui/button.tsx';
import { say, sayError } from '../ui/say.ts';
import { Glyph, nameOf } from '../ui/state.tsx';
import { Ago } from '../ui/time.tsx';
import type { Need } from './sections.ts';
import { dismiss } from './use-for-you.ts';
import { fitsInRow, isMarked, questionOf, taskWords } from './words.ts';

interface NeedRowProps {
  readonly need: Need;
  readonly isCurrent: boolean;
  /** When the list last changed, in the time of `performance.now()`. */
  readonly movedAt: number;
}

/** What needs somebody: what it is, and what can be done at once. */
export function NeedRow({ need, isCurrent, movedAt }: NeedRowProps) {
  const { href, title, project, at, hasFailed } = headOf(need);
  return (
    <li
      className={clsx(
        'relative flex flex-wrap items-end gap-x-3 gap-y-1 px-3 py-2 hover:bg-hover',
        isCurrent && 'shadow-[inset_3px_0_0_var(--color-ink)]',
      )}
    >
      <Link
        href={href}
        className="grid min-w-0 flex-1 basis-72 grid-cols-[0.875rem_minmax(0,1fr)] items-center gap-x-3 gap-y-px -outline-offset-2 after:absolute after:inset-0 pointer-coarse:min-h-11"
      >
        <Glyph name={hasFailed ? 'failed' : 'needs'} />
        <span className="truncate">
          <b className="font-semibold">{title}</b> <span className="text-faint">{project}</span>
        </span>
        <span className="col-start-2 text-muted wrap-anywhere">
          <Words need={need} />
        </span>
      </Link>
      <div className="relative flex flex-col items-end gap-1 max-md:ml-6.5 max-md:w-full max-md:flex-row max-md:items-center">
        <Ago at={at} className="text-facts text-faint tabular-nums max-md:order-last max-md:ml-auto" />
        <Answers need={need} href={href} movedAt={movedAt} />
      </div>
    </li>
  );
}

function headOf(need: Need) {
  if (need.kind === 'task') {
    const { id, name, goal, state, endedAt, startedAt, createdAt } = need.task;
    const at = endedAt ?? startedAt ?? createdAt;
    const about = { href: `/tasks/${id}`, title: name ?? goal, project: projectAt(need.task.cwd)?.name };
    return { ...about, at, hasFailed: state === 'failed' };
  }
  const row = need.conversation;
  const at = need.kind === 'questions' ? need.permissions[0].askedAt : need.conversation.updatedAt;
  const title = row === null ? 'A conversation' : nameOf(row);
  return { href: `/c/${need.id}`, title, project: (row && projectOf(row))?.name, at, hasFailed: false };
}

function Words({ need }: { need: Need }) {
  if (need.kind === 'task') {
    const words = taskWords(need.task);
    return need.task.state === 'failed' ? `Task ${words}: ${need.task.progress.decision?.reason ?? ''}` : words;
  }
  if (need.kind === 'stranded') return `${need.conversation.stranded?.message} ${need.conversation.stranded?.hint}`;
  if (need.kind === 'unrestored')
    return <b className="font-semibold text-look">Not restored. Its last prompt was not sent.</b>;
  return <QuestionWords permissions={need.permissions} />;
}

function QuestionWords({
  permissions: [permission, ...more],
}: {
  permissions: readonly [Permission, ...Permission[]];
}) {
  const { verb, object } = questionOf(permission);
  const marked = [permission, ...more].some(isMarked);
  return (
    <>
      {verb !== null && `Wants to ${verb} `}
      <span className={clsx('text-ink', verb !== null && 'font-mono text-facts')}>{object}</span>
      {more.length > 0 && ` and ${more.length} more`}
      {marked && (
        <span className="ml-2 inline-flex items-center gap-1 rounded-sm border border-look-line bg-look-soft px-1.5 text-facts font-semibold text-look">
          <TriangleAlert size={12} aria-hidden />
          marked characters
        </span>
      )}
    </>
  );
}

function Answers({ need, href, movedAt }: { need: Need; href: string; movedAt: number }) {
  const may = useMay('approve');
  if (need.kind === 'questions') {
    const [permission] = need.permissions;
    const choice = fitsInRow(need.permissions) ? choiceOf(permission) : null;
    if (choice !== null && may) return <Choice {...{ permission, ...choice, movedAt }} />;
    const words =
      need.permissions.length === 2 ? 'Look at both' : need.permissions.length > 2 ? 'Look at all' : 'Look at it';
    return <Open href={href} words={words} />;
  }
  if (need.kind === 'task' && need.task.state === 'asking') return <Open href={href} words="Answer it" />;
  if (need.kind === 'stranded') return <Open href={href} words="See why" />;
  return (
    <span className="flex gap-1.5">
      <Button small look="quiet" onClick={() => dismiss(need)}>
        Dismiss
      </Button>
      <Open href={href} words="See why" />
    </span>
  );
}

function Open({ href, words }: { href: string; words: string }) {
  return (
    <Link
      href={href}
      className="inline-flex min-h-7 items-center rounded-md border border-line-strong bg-raised px-2.5 hover:bg-hover pointer-coarse:min-h-11"
    >
      {words}
    </Link>
  );
}

/** Null: it cannot be answered with a plain no or once. */
function choiceOf({ options }: Permission) {
  const refuse = options.find(({ kind }) => kind === 'reject_once');
  const allow = options.find(({ kind }) => kind === 'allow_once');
  return refuse === undefined || allow === undefined ? null : { refuse, allow };
}

interface ChoiceProps {
  readonly permission: Permission;
  readonly refuse: PermissionOption;
  readonly allow: PermissionOption;
  readonly movedAt: number;
}

/** Ignores presses that began before the row was at its place, or that a held key repeats. */
function Choice({ permission, refuse, allow, movedAt }: ChoiceProps) {
  const tl = useClient();
  const [isSending, setSending] = useState(false);
  const press = useRef<Press | null>(null);
  const { shownAt, isReady } = useShownAt(movedAt);
  const answer = async ({ optionId }: PermissionOption) => {
    const may = mayAnswer(shownAt, press.current, performance.now());
    press.current = null;
    if (!may || isSending) return;
    setSending(true);
    try {
      const answered = await answerPermission(tl, permission.id, optionId);
      if (answered.optionId !== optionId) say('It had already been answered elsewhere. That answer counts.');
    } catch (error) {
      sayError(error);
    } finally {
      setSending(false);
    }
  };
  const button = (option: PermissionOption, words: string) => (
    <Button
      small
      aria-disabled={!isReady || isSending}
      className={clsx((!isReady || isSending) && 'opacity-60')}
      onPointerDown={() => {
        press.current = { at: performance.now(), repeats: false };
      }}
      onKeyDown={(event) => {
        if (event.key !== 'Enter' && event.key !== ' ') return;
        // Enter would also open the line.
        event.stopPropagation();
        if (event.repeat) event.preventDefault();
        press.current = { at: performance.now(), repeats: event.repeat };
      }}
      onClick={() => void answer(option)}
    >
      {words}
    </Button>
  );
  return (
    <span className="flex gap-1.5">
      {button(refuse, 'Refuse')}
      {button(allow, 'Allow once')}
    </span>
  );
}

/** When the row came to its place: it was rendered, the list has changed, or its tab became visible. `isReady`: for the look only. */
function useShownAt(movedAt: number) {
  const [shownAt, setShownAt] = useState(() => performance.now());
  const [readyFor, setReadyFor] = useState(-1);
  const at = Math.max(shownAt, movedAt);
  useEffect(() => {
    const again = () => document.visibilityState === 'visible' && setShownAt(performance.now());
    document.addEventListener('visibilitychange', again);
    return () => document.removeEventListener('visibilitychange', again);
  }, []);
  useEffect(() => {
    const timer = setTimeout(() => setReadyFor(at), at + INERT_MS - performance.now());
    return () => clearTimeout(timer);
  }, [at]);
  return { shownAt: at, isReady: readyFor === at };
}
