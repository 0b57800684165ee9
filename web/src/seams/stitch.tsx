import type { ReactNode } from 'react';
import { laneOf, shadeOf } from './line.ts';
import type { SeamKind, Tone } from './seam.ts';

/** How a stitch is drawn. */
export type StitchLook = SeamKind | 'unproved' | 'part' | 'restoring';

interface StitchProps {
  readonly look: StitchLook;
  /** The strands above and below; null: not known yet. */
  readonly from: number | null;
  readonly to: number | null;
}

/** The two halves of the bend, from the left lane to the right one. */
const ABOVE = 'M9.5 0V7C9.5 12.5 11.5 15.3 14.5 18';
const BELOW = 'M14.5 18C17.5 20.7 19.5 23.5 19.5 29V36';
/** Left and right of the bend. */
const TICKS = 'M1 18h4M24 18h4';
const DOUBLE_TICKS = 'M1 15h4M24 15h4M1 21h4M24 21h4';

/** The line at a seam, with its ticks. What it shows is also said in words. */
export function Stitch({ look, from, to }: StitchProps) {
  const [above, below] = [shadeOf(from), shadeOf(to)];
  const isMirrored = laneOf(from ?? 1) === 'right';
  const bends = from !== null && to !== null && from !== to;
  const drawn = bends || !STRAIGHT.includes(look) ? DRAWN[look](above, below) : straight(above, look);
  return (
    <svg className="stitch" width={38} height={36} viewBox="0 0 38 36" aria-hidden="true" data-stitch={look}>
      <g transform={isMirrored ? 'matrix(-1 0 0 1 29 0)' : undefined}>{drawn}</g>
    </svg>
  );
}

/** Looks that run straight where the strand goes on. */
const STRAIGHT: readonly StitchLook[] = ['resume', 'rehydrate', 'transcript', 'replay', 'handoff', 'unproved', 'fork'];

function straight(shade: string, look: StitchLook): ReactNode {
  const ticks = look === 'handoff' ? 'M1.5 15h4M13.5 15h4M1.5 21h4M13.5 21h4' : 'M1.5 18h4M13.5 18h4';
  return (
    <>
      <path d="M9.5 0V36" stroke={shade} strokeDasharray={look === 'unproved' ? '18 3 4 3 4 40' : undefined} />
      <path className={look === 'unproved' ? 'tick look' : 'tick'} d={ticks} />
    </>
  );
}

function bend(above: string, below: string, ticks = TICKS): ReactNode {
  return (
    <>
      <path className="tick" d={ticks} />
      <path d={ABOVE} stroke={above} />
      <path d={BELOW} stroke={below} />
    </>
  );
}

const DRAWN: Readonly<Record<StitchLook, (above: string, below: string) => ReactNode>> = {
  resume: bend,
  rehydrate: bend,
  transcript: bend,
  replay: bend,
  handoff: (above, below) => bend(above, below, DOUBLE_TICKS),
  fork: (above, below) => (
    <>
      <path className="thin" d="M9.5 14V36" stroke={above} />
      {bend(above, below, '')}
    </>
  ),
  import: (_, below) => (
    <>
      <path className="tick" d="M3 18h4M24 18h4" />
      <path className="thin" d="M14.5 4v7M11 8l3.5 3.5L18 8" stroke={below} />
      <path d={BELOW} stroke={below} />
      <circle className="dot" cx={14.5} cy={17.5} r={3.2} stroke={below} />
    </>
  ),
  unproved: (above, below) => (
    <>
      <path className="tick look" d={TICKS} />
      <path d={ABOVE} stroke={above} />
      <path d={BELOW} stroke={below} strokeDasharray="4 3" />
    </>
  ),
  part: (above, below) => (
    <>
      <path d="M9.5 0V8" stroke={above} />
      <path className="dots" d="M9.5 13C10 16 12 17 14.5 19S19 23 19.5 26" />
      <path d="M19.5 30V36" stroke={below} />
    </>
  ),
  fresh: (above, below) => (
    <>
      <path d="M9.5 0V11" stroke={above} />
      <path className="tick" d="M4.5 12.5h10" />
      <circle className="dot" cx={19.5} cy={24} r={3.2} stroke={below} />
      <path d="M19.5 28V36" stroke={below} />
    </>
  ),
  failed: (above) => (
    <>
      <path d="M9.5 0V12" stroke={above} />
      <path className="cross" d="M5.5 16l8 8M13.5 16l-8 8" />
    </>
  ),
  restoring: (above) => (
    <>
      <path d="M9.5 0V18" stroke={above} />
      <path className="tick" d="M1.5 18h4M13.5 18h4" />
    </>
  ),
};

/** How a seam is drawn: what is not known counts more than the way. */
export function lookOf(seam: {
  kind: SeamKind;
  tone: Tone;
  loss: object | null;
  proof: { tone: Tone } | null;
}): StitchLook {
  if (seam.kind === 'failed' || seam.kind === 'fresh') return seam.kind;
  if (seam.loss !== null) return 'part';
  return seam.proof !== null && seam.kind !== 'replay' && seam.proof.tone !== 'good' ? 'unproved' : seam.kind;
}
