import { Check } from 'lucide-react';
import { type CSSProperties, useEffect } from 'react';
import type { Receipt } from 'throughline/client';
import { type Proof, windowText } from '../../../src/core/restore/receipt.ts';
import { useConversation, useTurn } from '../data/conversation/use-conversation.ts';
import { useMay } from '../data/session.ts';
import { AnotherAgent } from '../failures/what-to-do.tsx';
import { laneOf, shadeOf } from './line.ts';
import { OpenedSeam } from './opened-seam.tsx';
import type { Loss, Seam } from './seam.ts';
import { useStrand } from './strands.ts';
import { useOpened } from './use-seam.ts';

interface LossBlockProps {
  readonly seam: Seam;
  readonly loss: Loss;
  readonly n: number;
  readonly isTarget: boolean;
}

/** A restore after which the session lacks half of the conversation or more. */
export function LossBlock({ seam, loss, n, isTarget }: LossBlockProps) {
  const [from, to] = [useStrand(n - 1), useStrand(n)];
  const [isOpen, setOpen] = useOpened(n, isTarget);
  const turn = useTurn(n)?.turn ?? null;
  const may = useMay('prompt');
  // biome-ignore lint/correctness/useExhaustiveDependencies: only another address opens it again
  useEffect(() => {
    if (isTarget) setOpen(true);
  }, [isTarget]);
  const { receipt } = seam;
  if (receipt === null) return null;
  const style = { '--shade': shadeOf(to), '--lane-from': `var(--lane-${laneOf(from ?? 1)})` } as CSSProperties;
  return (
    <section
      aria-label={`Seam before turn ${n}`}
      data-seam={n}
      data-lane={laneOf(to ?? 1)}
      style={style}
      className="on-line lost pb-4 text-ui tabular-nums"
    >
      <Dots from={from} to={to} />
      <div className="overflow-hidden rounded-lg border-2 border-look-fill bg-look-soft">
        <div className="px-5 pt-4 pb-4.5">
          <h2 className="text-view font-semibold text-pretty">{titleOf(loss)}</h2>
          <LossText seam={seam} loss={loss} receipt={receipt} />
          <LossStrip loss={loss} />
          {turn !== null && turn.endedAt !== null && may && (
            <div className="mt-3 flex flex-wrap gap-2">
              <AnotherAgent turn={turn} label="Ask another agent" />
            </div>
          )}
        </div>
        <div className="flex flex-wrap items-center gap-x-3 border-t border-look-line px-5 py-2 text-muted">
          <span className="flex items-center gap-2">
            {receipt.proof !== 'none' && receipt.proof !== 'refuted' && (
              <Check size={14} className="text-accent" aria-hidden />
            )}
            {CONFIRMED[receipt.proof]}
          </span>
          <span className="flex-1" />
          <button
            type="button"
            aria-expanded={isOpen}
            onClick={() => setOpen(!isOpen)}
            className="touch underline decoration-control underline-offset-3 hover:text-ink"
          >
            Details, exact text and price
          </button>
        </div>
        {isOpen && (
          <div className="bg-raised">
            <OpenedSeam receipt={receipt} turn={turn} n={n} />
          </div>
        )}
      </div>
    </section>
  );
}

function LossText({ seam, loss, receipt }: { seam: Seam; loss: Loss; receipt: Receipt }) {
  return (
    <p className="mt-1 max-w-[64ch] text-said text-muted">
      {[seam.happened, reasonOf(receipt)].filter((text) => text !== '').join(' ')} The session knows the newest{' '}
      <b className="text-ink">
        {loss.known.toLocaleString('en')} of {loss.of.toLocaleString('en')}
      </b>{' '}
      turns. The older ones are safe here, but it does not know them.
    </p>
  );
}

const CONFIRMED: Readonly<Record<Proof, string>> = {
  proved: 'What it was told is proved.',
  consistent: 'What it was told matches what it has.',
  counted: 'What it was told was delivered whole.',
  none: 'Nothing confirms that it has even these.',
  refuted: 'What the agent has says otherwise.',
};

function titleOf({ dropped, of }: Loss): string {
  return dropped === of ? 'Nothing of this conversation fitted.' : 'Most of this conversation did not fit.';
}

function reasonOf(receipt: Receipt): string {
  const window = windowText(receipt);
  return window === null ? '' : `The history was ${window}.`;
}

/** How much is missing, and from when. */
function LossStrip({ loss: { dropped, of } }: { loss: Loss }) {
  const outline = useConversation((state) => state.outline);
  const day = (n: number) => {
    const at = outline?.[n - 1]?.startedAt;
    return at == null ? '' : new Date(at).toLocaleDateString([], { day: 'numeric', month: 'long' });
  };
  const [first, last] = [day(1), day(dropped)];
  const days = first === '' || last === '' ? '' : first === last ? ` · ${first}` : ` · ${first} to ${last}`;
  return (
    <figure className="mt-3.5">
      <div className="flex h-6.5 gap-1" aria-hidden>
        <span
          className="flex min-w-6 items-center justify-center rounded-[3px] border-[1.5px] border-dashed border-look bg-canvas"
          style={{ flexGrow: dropped }}
        />
        {dropped < of && (
          <span className="min-w-2 border-b-26 border-(--shade)" style={{ flexGrow: of - dropped, height: 0 }} />
        )}
      </div>
      <figcaption className="mt-1.5 font-semibold text-look">
        {dropped.toLocaleString('en')} {dropped === 1 ? 'turn' : 'turns'} it does not know: 1–
        {dropped.toLocaleString('en')}
        {days}
      </figcaption>
    </figure>
  );
}

/** The line ends, dots lead along the block, and the next strand begins below it. */
function Dots({ from, to }: { from: number | null; to: number | null }) {
  const [above, below] = [shadeOf(from), shadeOf(to)];
  const isMirrored = laneOf(from ?? 1) === 'right';
  const bends = from !== null && to !== null && from !== to;
  const mirror = isMirrored ? 'matrix(-1 0 0 1 29 0)' : undefined;
  return (
    <>
      <svg className="stitch" width={38} height={36} aria-hidden="true" data-stitch="lost">
        <g transform={mirror}>
          <path d="M9.5 0V26" stroke={above} />
          <path className="tick" d="M4 30l11 -7" />
        </g>
      </svg>
      <svg className="stitch stitch-end" width={38} height={100} aria-hidden="true">
        <g transform={mirror}>
          <path className="dots" d={bends ? 'M9.5 0C9.5 40 19.5 30 19.5 78' : 'M9.5 0V78'} />
          <path d={bends ? 'M19.5 84V100' : 'M9.5 84V100'} stroke={below} />
        </g>
      </svg>
    </>
  );
}
