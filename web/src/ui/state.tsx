import { clsx } from 'clsx';
import {
  Circle,
  CircleHelp,
  CirclePause,
  CirclePlay,
  CircleX,
  Clock,
  type LucideIcon,
  Unlink,
  Unplug,
} from 'lucide-react';
import type { Conversation, ConversationState } from 'throughline/client';
import { writtenOut } from '../../../src/core/input/marks.ts';

interface Look {
  readonly word: string;
  readonly icon: LucideIcon;
  readonly colour: string;
}

/** The name and the look of each state. A colour is never the only difference. */
export const STATES: Readonly<Record<ConversationState, Look>> = {
  asks: { word: 'Asks you', icon: CircleHelp, colour: 'text-accent' },
  running: { word: 'Running', icon: CirclePlay, colour: 'text-accent' },
  queued: { word: 'Queued', icon: Clock, colour: 'text-muted' },
  unrestored: { word: 'Not restored', icon: Unlink, colour: 'text-broken' },
  failed: { word: 'Failed', icon: CircleX, colour: 'text-broken' },
  interrupted: { word: 'Interrupted', icon: CirclePause, colour: 'text-look' },
  idle: { word: 'Idle', icon: Circle, colour: 'text-faint' },
};

const STRANDED: Look = { word: 'Stranded', icon: Unplug, colour: 'text-look' };

interface MarkProps {
  readonly state: ConversationState;
  /** Why no process runs it, shown instead of the state; left out or null: it is not stranded. */
  readonly stranded?: Conversation['stranded'];
  readonly className?: string;
}

export function StateMark({ state, stranded = null, className }: MarkProps) {
  const { word, icon: Icon, colour } = stranded === null ? STATES[state] : STRANDED;
  return (
    <span className={clsx('inline-flex shrink-0 items-center gap-1', colour, className)} title={stranded?.message}>
      <Icon size={12} aria-hidden />
      {word}
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
