import { clsx } from 'clsx';
import { Ban, Check, CircleHelp, type LucideIcon, TriangleAlert, Undo2 } from 'lucide-react';
import { Suspense, useEffect, useRef, useState } from 'react';
import type { Permission, PermissionOption } from 'throughline/client';
import { writtenOut } from '../../../src/core/input/marks.ts';
import { warningOf } from '../../../src/core/input/warning.ts';
import { answerPermission } from '../data/permissions.ts';
import { useClient, useMay } from '../data/session.ts';
import { Button } from '../ui/button.tsx';
import { lazily } from '../ui/lazily.tsx';
import { ErrorNote, Verbatim } from '../ui/notes.tsx';
import { SafeText } from '../ui/safe-text.tsx';
import { shellWord } from '../ui/shell-word.ts';
import { Ago } from '../ui/time.tsx';
import { type Asked, askedOf, INERT_MS, markableTexts, mayAnswer, outcomeOf, type Press } from './asked.ts';

const AskedDiffs = lazily(async () => (await import('./diffs.tsx')).AskedDiffs, NewTexts);

interface PermissionCardProps {
  readonly permission: Permission;
  /** When the content around it last moved, in the time of `performance.now()`. A card that moves is inert again. */
  readonly movedAt?: number;
}

/**
 * An open question of an agent, or how it ended. It never takes the focus. It ignores everything in its first half second, and held
 * keys always: somebody who types or clicks somewhere else must not approve anything by accident.
 */
export function PermissionCard({ permission, movedAt = 0 }: PermissionCardProps) {
  const tl = useClient();
  const may = useMay('approve');
  const [mine, setMine] = useState<Permission | null>(null);
  const [sending, setSending] = useState<string | null>(null);
  const [error, setError] = useState<unknown>(null);
  const shownAt = useShownAt(movedAt);
  const current = permission.state === 'open' ? (mine ?? permission) : permission;
  const answer = async ({ optionId }: PermissionOption) => {
    setSending(optionId);
    setError(null);
    try {
      setMine(await answerPermission(tl, permission.id, optionId));
    } catch (failure) {
      setError(failure);
    } finally {
      setSending(null);
    }
  };
  const asked = askedOf(permission);
  const warning = warningOf([permission.title, ...markableTexts(asked)]);
  // Whoever cannot see what it is may allow it once, and not for good.
  const options = permission.options.filter(({ kind }) => warning === null || kind !== 'allow_always');
  const outcome = outcomeOf(current);
  if (outcome !== null) return <Outcome permission={current} outcome={outcome} />;
  return (
    <section
      aria-label={`Permission: ${writtenOut(permission.title, 'code')}`}
      className="rounded-lg border border-look bg-raised p-3 text-ui"
    >
      <header className="flex items-start gap-2">
        <CircleHelp size={16} className="mt-0.5 shrink-0 text-look" aria-hidden />
        <h3 className="min-w-0 flex-1 font-medium break-words">
          <SafeText text={permission.title} as="code" />
        </h3>
        <Ago at={permission.askedAt} className="shrink-0 text-facts text-faint tabular-nums" />
      </header>
      <AskedView asked={asked} warning={warning} />
      {may ? (
        <OptionRow options={options} shownAt={shownAt} sending={sending} onAnswer={answer} />
      ) : (
        <p className="mt-2 pl-6 text-muted">You may not answer this question: that needs the scope approve.</p>
      )}
      {error !== null && (
        <div className="mt-2">
          <ErrorNote error={error} cli={`throughline answer ${shellWord(permission.id)} OPTION`} />
        </div>
      )}
    </section>
  );
}

/** Options that reject come first in the tab order, and are never less prominent than those that allow. */
function OptionRow({ options, shownAt, sending, onAnswer }: OptionRowProps) {
  const press = useRef<Press | null>(null);
  const isReady = useIsReady(shownAt);
  const pressed = (repeats: boolean) => {
    press.current = { at: performance.now(), repeats };
  };
  const answer = (option: PermissionOption) => {
    const may = mayAnswer(shownAt, press.current, performance.now());
    press.current = null;
    if (may && sending === null) onAnswer(option);
  };
  const isReject = ({ kind }: PermissionOption) => kind.startsWith('reject');
  const ordered = [...options.filter(isReject), ...options.filter((option) => !isReject(option))];
  return (
    <div className="mt-3 flex flex-wrap gap-2">
      {ordered.map((option) => (
        <Button
          key={option.optionId}
          look={isReject(option) ? 'danger' : 'plain'}
          aria-disabled={!isReady || sending !== null}
          className={clsx('transition-opacity', (!isReady || sending !== null) && 'opacity-50')}
          onPointerDown={() => pressed(false)}
          onKeyDown={(event) => {
            if (event.key !== 'Enter' && event.key !== ' ') return;
            if (event.repeat) event.preventDefault();
            pressed(event.repeat);
          }}
          onClick={() => answer(option)}
        >
          {isReject(option) ? <Ban size={14} aria-hidden /> : <Check size={14} aria-hidden />}
          <SafeText text={option.name} as="words" />
        </Button>
      ))}
      {options.length === 0 && <p className="text-muted">The agent offers no options. Cancel the turn to continue.</p>}
    </div>
  );
}

interface OptionRowProps {
  readonly options: readonly PermissionOption[];
  readonly shownAt: number;
  readonly sending: string | null;
  onAnswer(option: PermissionOption): void;
}

function AskedView({ asked, warning }: { asked: Asked; warning: string | null }) {
  const { tool, kind, targets, command, diffs, texts, input } = asked;
  const what = [...new Set([tool, kind])].filter((word) => word !== null).join(' · ');
  return (
    <div className="mt-1 space-y-2 pl-6">
      {(what !== '' || targets.length > 0) && (
        <p className="text-muted break-all">
          <SafeText text={what} as="code" />
          {targets.map((target) => (
            <code key={target} className="ml-2 font-mono text-facts text-ink">
              <SafeText text={target} as="code" />
            </code>
          ))}
        </p>
      )}
      {command !== null && <Literal text={command} label="Command" />}
      {diffs.length > 0 && (
        <Suspense fallback={<NewTexts diffs={diffs} />}>
          <AskedDiffs diffs={diffs} />
        </Suspense>
      )}
      {texts.map((text) => (
        <p key={text} className="whitespace-pre-wrap break-words">
          <SafeText text={text} as="code" />
        </p>
      ))}
      {input !== null && <Literal text={input} label="Input" />}
      {warning !== null && (
        <p className="flex gap-2 text-look">
          <TriangleAlert size={16} className="mt-0.5 shrink-0" aria-hidden />
          {warning} It can be allowed only once.
        </p>
      )}
    </div>
  );
}

/** The new content of the files, until the differences can be shown. */
function NewTexts({ diffs }: Pick<Asked, 'diffs'>) {
  return diffs.map(({ path, newText }, index) => <Literal key={String(index)} text={newText} label={path} />);
}

function Literal({ text, label }: { text: string; label: string }) {
  return (
    <Verbatim label={label} className="max-h-60">
      <SafeText text={text} as="code" />
    </Verbatim>
  );
}

const ENDS: Readonly<Record<Exclude<Permission['state'], 'open'>, { Icon: LucideIcon; tone: string }>> = {
  answered: { Icon: Check, tone: 'text-accent' },
  denied: { Icon: Ban, tone: 'text-broken' },
  withdrawn: { Icon: Undo2, tone: 'text-muted' },
};

function Outcome({ permission, outcome }: { permission: Permission; outcome: string }) {
  const rejected = permission.options.some(
    ({ optionId, kind }) => optionId === permission.optionId && kind.startsWith('reject'),
  );
  const { Icon, tone } = ENDS[permission.state === 'open' || rejected ? 'denied' : permission.state];
  return (
    <p className="flex items-start gap-2 px-3 py-1 text-ui text-muted" role="status">
      <Icon size={14} className={clsx('mt-0.5 shrink-0', tone)} aria-hidden />
      <span className="min-w-0 break-words">
        <span className="text-ink">
          <SafeText text={permission.title} as="code" />
        </span>{' '}
        {outcome}
      </span>
    </p>
  );
}

/** When the card last appeared at its position: it was rendered, it moved, or its tab became visible. */
function useShownAt(movedAt: number): number {
  const [shownAt, setShownAt] = useState(() => performance.now());
  useEffect(() => {
    const again = () => document.visibilityState === 'visible' && setShownAt(performance.now());
    document.addEventListener('visibilitychange', again);
    return () => document.removeEventListener('visibilitychange', again);
  }, []);
  return Math.max(shownAt, movedAt);
}

/** Only for the look of the buttons. Whether a press counts depends on when it began. */
function useIsReady(shownAt: number): boolean {
  const [readyFor, setReadyFor] = useState(-1);
  useEffect(() => {
    const timer = setTimeout(() => setReadyFor(shownAt), shownAt + INERT_MS - performance.now());
    return () => clearTimeout(timer);
  }, [shownAt]);
  return readyFor === shownAt;
}
