import { clsx } from 'clsx';
import { Check, ChevronDown, ChevronRight } from 'lucide-react';
import { type CSSProperties, type ReactNode, useEffect } from 'react';
import type { Turn } from 'throughline/client';
import { Link } from 'wouter';
import type { Rung } from '../../../src/core/restore/restore-settings.ts';
import type { Restoring } from '../data/conversation/model.ts';
import { useConversation, useTurn } from '../data/conversation/use-conversation.ts';
import { useVerbs } from '../data/conversation/verbs.ts';
import { useMay } from '../data/session.ts';
import { AnotherAgent } from '../failures/what-to-do.tsx';
import { Button } from '../ui/button.tsx';
import { sayError } from '../ui/say.ts';
import { At } from '../ui/time.tsx';
import { laneOf, shadeOf } from './line.ts';
import { LossBlock } from './loss-block.tsx';
import { OpenedSeam } from './opened-seam.tsx';
import { isLarge, type Loss, type Seam, type Tone } from './seam.ts';
import { lookOf, Stitch } from './stitch.tsx';
import { useStrand } from './strands.ts';
import { useEnding, useOpened } from './use-seam.ts';

const INKS: Readonly<Record<Tone, string>> = {
  good: 'text-accent',
  look: 'text-look',
  broken: 'text-broken',
};

interface SeamProps {
  readonly seam: Seam;
  readonly n: number;
  readonly isTarget: boolean;
}

/** A seam in one sentence, with its details when it is opened. A large loss is a block of its own, and is never folded away. */
export function SeamBar({ seam, n, isTarget }: SeamProps) {
  useEnding(n, seam);
  if (seam.loss !== null && seam.kind !== 'fresh' && isLarge(seam.loss)) {
    return <LossBlock seam={seam} loss={seam.loss} n={n} isTarget={isTarget} />;
  }
  return <SeamLine seam={seam} n={n} isTarget={isTarget} />;
}

const BOXES: Readonly<Record<Tone, string>> = {
  good: '',
  look: 'rounded-md border border-look-line bg-look-soft px-2.5',
  broken: 'rounded-md border border-broken-line bg-broken-soft px-2.5',
};

function SeamLine({ seam, n, isTarget }: SeamProps) {
  // A target is open from the first render: opening it later would push the target out of view.
  const [isOpen, setOpen] = useOpened(n, isTarget);
  const turn = useTurn(n)?.turn ?? null;
  // biome-ignore lint/correctness/useExhaustiveDependencies: only another address opens it again
  useEffect(() => {
    if (isTarget) setOpen(true);
  }, [isTarget]);
  const isBoxed = seam.kind === 'failed' || (seam.loss !== null && seam.kind !== 'fresh');
  const opens = seam.receipt !== null;
  const box = isOpen && opens ? OPENED : isBoxed && BOXES[seam.tone];
  return (
    <OnLine n={n} seam={seam}>
      <div className={clsx('relative', box)}>
        <div className={clsx('flex items-center gap-2', isOpen && opens ? 'items-start' : 'min-h-9')}>
          {opens ? (
            <button
              type="button"
              aria-expanded={isOpen}
              onClick={() => setOpen(!isOpen)}
              className={clsx('min-w-0 flex-1 text-left pointer-coarse:min-h-11', isOpen && 'p-3.5 pl-4.5')}
            >
              {isOpen ? (
                <Heading seam={seam} />
              ) : (
                <Sentence seam={seam} at={turn?.sent?.at ?? turn?.startedAt ?? null} />
              )}
            </button>
          ) : (
            <p className="min-w-0 flex-1">
              <Words seam={seam} />
            </p>
          )}
          {seam.kind === 'failed' && !isOpen && turn !== null && <Again turn={turn} />}
          <Original n={n} />
        </div>
        {isOpen && seam.receipt !== null && <OpenedSeam receipt={seam.receipt} turn={turn} n={n} />}
      </div>
    </OnLine>
  );
}

const OPENED = 'overflow-hidden rounded-lg border border-line-strong bg-raised';

/** The place of a seam on the line: the stitch at the left, and the line on below it. */
function OnLine({ n, seam, children }: { n: number; seam: Seam; children: ReactNode }) {
  const [from, to] = [useStrand(n - 1), useStrand(n)];
  const style = { '--shade': shadeOf(to) } as CSSProperties;
  return (
    <section
      aria-label={`Seam before turn ${n}`}
      data-seam={n}
      data-lane={laneOf(to ?? 1)}
      data-line={seam.kind === 'failed' ? 'none' : undefined}
      style={style}
      className="on-line below-stitch pb-3.5 text-ui tabular-nums"
    >
      <Stitch look={lookOf(seam)} from={from} to={to} />
      {children}
    </section>
  );
}

function Sentence({ seam, at }: { seam: Seam; at: number | null }) {
  const { proof, tone, loss, kind } = seam;
  return (
    <span className="flex items-center gap-2 py-2">
      <Words seam={seam} />
      {tone === 'good' ? (
        <span className="min-w-3 flex-1 border-t border-line max-sm:hidden" aria-hidden />
      ) : (
        <span className="flex-1" />
      )}
      {loss !== null && kind !== 'fresh' && <MiniStrip loss={loss} />}
      {proof !== null && (loss === null || proof.tone !== 'good') && (
        <span
          className={clsx(
            'flex shrink-0 items-center gap-1 text-facts',
            INKS[proof.tone],
            proof.tone === 'good' && 'max-sm:sr-only',
          )}
        >
          {proof.tone === 'good' && <Check size={13} aria-hidden />}
          {proof.word}
        </span>
      )}
      {at !== null && <At at={at} className="shrink-0 text-facts text-faint max-sm:hidden" />}
      <ChevronRight size={14} className="shrink-0 text-muted" aria-hidden />
    </span>
  );
}

function Words({ seam: { happened, means, tone, loss, kind } }: { seam: Seam }) {
  const strong = tone === 'good' || (tone === 'look' && loss === null) ? 'text-ink' : clsx('font-semibold', INKS[tone]);
  const isUnopened = (kind === 'import' || kind === 'fork') && means === 'Not yet opened here.';
  return (
    <span className="min-w-0 text-pretty text-muted wrap-anywhere">
      {happened !== '' && <span className={clsx(isUnopened && 'text-ink')}>{happened} </span>}
      <span className={clsx(!isUnopened && strong)}>{means}</span>
    </span>
  );
}

/** The sentence of an opened seam: what it means first. */
function Heading({ seam: { happened, means, tone } }: { seam: Seam }) {
  return (
    <span className="flex items-start gap-3">
      <span className="min-w-0 flex-1">
        <span className={clsx('block text-seam font-semibold text-pretty', tone === 'good' ? 'text-ink' : INKS[tone])}>
          {means}
        </span>
        {happened !== '' && <span className="mt-0.5 block text-said text-muted wrap-anywhere">{happened}</span>}
      </span>
      <ChevronDown size={16} className="mt-1 shrink-0 text-muted" aria-hidden />
    </span>
  );
}

/** What is missing, and what is there. */
function MiniStrip({ loss: { dropped, of } }: { loss: Loss }) {
  const gone = Math.max(8, Math.min(86, Math.round((dropped / of) * 94)));
  return (
    <svg className="strip h-3.5 w-24 shrink-0 max-sm:hidden" viewBox="0 0 96 14" aria-hidden="true">
      <rect className="void" x={1} y={2} width={gone} height={10} rx={2} />
      <rect className="word" x={gone + 3} y={1} width={93 - gone} height={12} rx={2} />
    </svg>
  );
}

/** The ways on after a failed restore that need no choice. The others are in the details. */
function Again({ turn }: { turn: Turn }) {
  const { retry } = useVerbs();
  if (!useMay('prompt')) return null;
  return (
    <span className="flex shrink-0 flex-wrap gap-1.5">
      <Button small onClick={() => void retry(turn.id).catch(sayError)}>
        Try again
      </Button>
      <AnotherAgent turn={turn} label="Other agent" />
    </span>
  );
}

/** In a fork: the link to the original. */
function Original({ n }: { n: number }) {
  const parent = useConversation(({ conversation }) => conversation?.parent ?? null);
  if (parent === null || parent.n !== n - 1) return null;
  return (
    <Link
      href={`~/c/${parent.conversationId}/turn/${parent.n}`}
      className="touch text-facts text-ink underline decoration-control underline-offset-3"
    >
      Original
    </Link>
  );
}

const DOING: Readonly<Record<Rung, string>> = {
  live: 'Going on in its session',
  resume: 'Reopening its session',
  rehydrate: 'Rebuilding its session file',
  transcript: 'Telling a new session what was said',
  replay: 'Asking a new session the prompts again',
};

/** In the place of the seam during a restore. `turn`: the one that waits for it; null: nothing does. */
export function RestoringBar({ restoring, n, turn }: { restoring: Restoring; n: number; turn: Turn | null }) {
  const { rung, done, total, tried } = restoring;
  const { cancel } = useVerbs();
  const may = useMay('prompt');
  const from = useStrand(n - 1);
  const share = total === 0 ? 0 : done / total;
  return (
    <section
      aria-label="Restoring context"
      data-lane={laneOf(from ?? 1)}
      style={{ '--shade': shadeOf(from) } as CSSProperties}
      className="on-line pb-3.5 text-ui tabular-nums"
    >
      <Stitch look="restoring" from={from} to={from} />
      <div className="flex min-h-9 flex-wrap items-center gap-x-3 text-muted">
        <span role="status">
          {DOING[rung]}: {done.toLocaleString('en')} of {total.toLocaleString('en')} {total === 1 ? 'turn' : 'turns'}
        </span>
        <span className="flex-1" />
        <svg className="strip h-3.5 w-24 shrink-0" viewBox="0 0 96 14" aria-hidden="true">
          <rect x={0.5} y={5} width={95} height={4} rx={2} className="fill-line-strong" />
          <rect x={0.5} y={5} width={95 * share} height={4} rx={2} className="word" />
        </svg>
        {turn !== null && may && (
          <Button small look="quiet" onClick={() => void cancel(turn.id).catch(sayError)}>
            Stop
          </Button>
        )}
      </div>
      {tried.map(({ rung: failed, failure }, index) => (
        <p key={String(index)} className="text-facts text-muted">
          {DOING[failed as Rung] ?? failed}: {failure}
        </p>
      ))}
    </section>
  );
}
