import { clsx } from 'clsx';
import { ChevronRight, CircleX, GitFork, type LucideIcon, RefreshCw, ShieldAlert, ShieldCheck } from 'lucide-react';
import { Fragment, useEffect } from 'react';
import { Link } from 'wouter';
import type { Restoring } from '../data/conversation/model.ts';
import { useConversation, useTurn } from '../data/conversation/use-conversation.ts';
import { HOW, type Seam, type Tone } from './seam.ts';
import { SeamDetails } from './seam-details.tsx';
import { useEnding, useOpened } from './use-seam.ts';

const LOOKS: Readonly<
  Record<Tone, { readonly icon: LucideIcon; readonly ink: string; readonly bar: string; readonly soft: string }>
> = {
  good: { icon: ShieldCheck, ink: 'text-accent', bar: 'border-accent/35', soft: 'bg-accent-soft' },
  warn: { icon: ShieldAlert, ink: 'text-look', bar: 'border-look/35', soft: 'bg-look-soft' },
  bad: { icon: CircleX, ink: 'text-broken', bar: 'border-broken/40', soft: 'bg-broken-soft' },
};

/** A seam in one sentence, with its details when it is opened. */
export function SeamBar({ seam, n, isTarget }: { seam: Seam; n: number; isTarget: boolean }) {
  // A target is open from the first render: opening it later would push the target out of view.
  const [isOpen, setOpen] = useOpened(n, isTarget);
  const turn = useTurn(n)?.turn ?? null;
  useEnding(n, seam);
  // biome-ignore lint/correctness/useExhaustiveDependencies: only another address opens it again
  useEffect(() => {
    if (isTarget) setOpen(true);
  }, [isTarget]);
  const { icon, ink, bar, soft } = LOOKS[seam.tone];
  const Icon = seam.receipt === null ? GitFork : icon;
  return (
    <section
      aria-label={`Seam before turn ${n}`}
      data-seam={n}
      className={clsx(
        'overflow-hidden rounded-md border bg-raised text-ui',
        bar,
        isTarget && 'outline-2 outline-offset-4 outline-accent/60',
      )}
    >
      <div className={clsx('flex items-start gap-2 px-2.5 py-1.5', soft)}>
        <Icon size={15} className={clsx('mt-0.5 shrink-0', ink)} aria-hidden />
        {seam.receipt === null && <p className="min-w-0 flex-1 leading-5">{seam.words.join(' · ')}</p>}
        {seam.receipt !== null && (
          <button
            type="button"
            aria-expanded={isOpen}
            onClick={() => setOpen(!isOpen)}
            className="min-w-0 flex-1 text-left leading-5 text-pretty tabular-nums pointer-coarse:min-h-11"
          >
            <span className={clsx('mr-0.5 font-medium', ink)}>{seam.verdict}</span> <Words words={seam.words} />
            <ChevronRight size={13} className={clsx('ml-1 inline text-muted', isOpen && 'rotate-90')} aria-hidden />
          </button>
        )}
        <Original n={n} />
        <Link
          href={`/seam/${n}`}
          className="touch text-facts leading-5 text-muted hover:text-ink pointer-coarse:-mr-2.5"
          aria-label="Link to this seam"
        >
          #
        </Link>
      </div>
      {isOpen && seam.receipt !== null && <SeamDetails receipt={seam.receipt} turn={turn} n={n} />}
    </section>
  );
}

/** Lines break between the parts of the sentence. */
function Words({ words }: { words: Seam['words'] }) {
  return (
    <span className="text-ink">
      {words.map((word, at) => (
        <Fragment key={word}>
          {at > 0 && ' '}
          <span className={clsx(word.length < SHORT && 'whitespace-nowrap')}>
            {word}
            {at < words.length - 1 && ' ·'}
          </span>
        </Fragment>
      ))}
    </span>
  );
}

/** About as many letters as fit into one line of a phone. */
const SHORT = 30;

/** In a fork: the link to the original. */
function Original({ n }: { n: number }) {
  const parent = useConversation(({ conversation }) => conversation?.parent ?? null);
  if (parent?.n !== n - 1) return null;
  return (
    <Link
      href={`~/c/${parent.conversationId}/turn/${parent.n}`}
      className="touch text-facts leading-5 text-ink underline decoration-control underline-offset-3"
    >
      Original
    </Link>
  );
}

/** In the place of the seam during a restore. */
export function RestoringBar({ restoring: { rung, done, total, tried } }: { restoring: Restoring }) {
  return (
    <section
      aria-label="Restoring context"
      className="rounded-md border border-line bg-sunken px-2.5 py-1.5 text-ui tabular-nums"
    >
      <p className="flex items-center gap-2">
        <RefreshCw size={14} className="shrink-0 text-accent" aria-hidden />
        <span role="status">
          Restoring context: {done} of {total}
        </span>
        <span className="text-muted">{HOW[rung]}</span>
      </p>
      <div className="mt-1.5 h-1 overflow-hidden rounded-full bg-line" aria-hidden>
        <div className="h-full bg-accent" style={{ width: `${total === 0 ? 0 : Math.round((done / total) * 100)}%` }} />
      </div>
      {tried.map(({ rung: failed, failure }, index) => (
        <p key={String(index)} className="mt-1 text-facts text-muted">
          {failed}: {failure}
        </p>
      ))}
    </section>
  );
}
