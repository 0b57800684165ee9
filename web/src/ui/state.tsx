import { clsx } from 'clsx';
import type { ReactNode } from 'react';
import type { Conversation, ConversationState } from 'throughline/client';
import { writtenOut } from '../../../src/core/input/marks.ts';

/** Each has its own shape: the colour only repeats it. */
export type GlyphName = 'needs' | 'working' | 'new' | 'failed' | 'waiting' | 'done';

const GLYPHS: Readonly<Record<GlyphName, ReactNode>> = {
  needs: (
    <>
      <rect width="14" height="14" rx="4" className="fill-look-fill forced-colors:fill-[CanvasText]" />
      <path
        d="M7 3.4v4.2M7 10.5v.01"
        strokeWidth="2"
        strokeLinecap="round"
        className="stroke-on-look forced-colors:stroke-[Canvas]"
      />
    </>
  ),
  working: (
    <>
      <circle
        cx="7"
        cy="7"
        r="5"
        strokeWidth="2.2"
        strokeDasharray="20 11"
        strokeLinecap="round"
        className="stroke-accent forced-colors:stroke-[CanvasText]"
      />
      <circle cx="7" cy="7" r="1.8" className="fill-accent forced-colors:fill-[CanvasText]" />
    </>
  ),
  new: <circle cx="7" cy="7" r="3.5" className="fill-accent forced-colors:fill-[CanvasText]" />,
  failed: (
    <path
      d="M3 3l8 8M11 3l-8 8"
      strokeWidth="2.2"
      strokeLinecap="round"
      className="stroke-broken forced-colors:stroke-[CanvasText]"
    />
  ),
  waiting: (
    <circle
      cx="7"
      cy="7"
      r="5"
      strokeWidth="1.8"
      strokeDasharray="2.2 2.6"
      className="stroke-control forced-colors:stroke-[CanvasText]"
    />
  ),
  done: (
    <path
      d="M2.5 7.5l3 3 6-7"
      strokeWidth="2.2"
      strokeLinecap="round"
      strokeLinejoin="round"
      className="stroke-accent forced-colors:stroke-[CanvasText]"
    />
  ),
};

const WORDS: Readonly<Record<GlyphName, string>> = {
  needs: 'Needs you',
  working: 'Working',
  new: 'New answer',
  failed: 'Failed',
  waiting: 'Waiting',
  done: 'Done',
};

/** `label`: left out, the word of the state; empty where the same is said beside it. */
export function Glyph({
  name,
  label = WORDS[name],
  className,
}: {
  name: GlyphName;
  label?: string;
  className?: string;
}) {
  const shape = clsx('size-3.5 shrink-0', className);
  if (label === '')
    return (
      <svg viewBox="0 0 14 14" fill="none" className={shape} aria-hidden="true">
        {GLYPHS[name]}
      </svg>
    );
  return (
    <svg viewBox="0 0 14 14" fill="none" className={shape} role="img" aria-label={label}>
      {GLYPHS[name]}
    </svg>
  );
}

interface Look {
  readonly word: string;
  readonly glyph: GlyphName;
}

/** Null: nothing is to be said about it. */
export const STATES: Readonly<Record<ConversationState, Look | null>> = {
  asks: { word: 'Asks you', glyph: 'needs' },
  running: { word: 'Working', glyph: 'working' },
  queued: { word: 'Waiting', glyph: 'waiting' },
  unrestored: { word: 'Not restored', glyph: 'needs' },
  failed: { word: 'Failed', glyph: 'failed' },
  interrupted: { word: 'Interrupted', glyph: 'failed' },
  idle: null,
};

const STRANDED: Look = { word: 'Stranded', glyph: 'needs' };

/** How a conversation is shown: that no process runs it, or else its state. */
export function lookOf({ state, stranded }: Pick<Conversation, 'state' | 'stranded'>): Look | null {
  return stranded === null ? STATES[state] : STRANDED;
}

/** The glyph of a conversation, with its word. */
export function StateMark({ of, className }: { of: Pick<Conversation, 'state' | 'stranded'>; className?: string }) {
  const look = lookOf(of);
  if (look === null) return null;
  return (
    <span className={clsx('inline-flex shrink-0 items-center gap-1.5', className)} title={of.stranded?.message}>
      <Glyph name={look.glyph} label="" />
      {look.word}
    </span>
  );
}

/** The name of a conversation for people, with everything written out that could make it look like another one. */
export function nameOf({ title, key }: Named, without = 'Untitled'): string {
  return writtenOut(title || key || without, 'words');
}

interface Named {
  readonly title: string;
  readonly key: string | null;
}

/** Where a fork was taken: it begins with the title of the other one. Null: it is no fork, or has a title of its own. */
export function branchOf(
  { parent, title }: Pick<Conversation, 'parent' | 'title'>,
  titleOf: (id: string) => string | undefined,
): string | null {
  if (parent === null || (titleOf(parent.conversationId) ?? title) !== title) return null;
  return `branched after turn ${parent.n}`;
}
