import { type RefObject, useRef, useState } from 'react';
import { flushSync } from 'react-dom';
import type { QueueTurn } from 'throughline/client';
import { useVerbs } from '../../data/conversation/verbs.ts';
import { sayError } from '../../ui/say.ts';
import { focusComposer } from '../field.tsx';
import { moved, queueOf } from './order.ts';

export type QueueControl = 'up' | 'down' | 'edit' | 'remove';

/** Where the focus goes after a change: to a control of the prompt at this place in the new queue. */
interface Focus {
  readonly place: number;
  readonly control: QueueControl;
}

interface Changes {
  /** A change is on its way. Until it is answered, nothing else is changed. */
  readonly isBusy: boolean;
  change(wanted: readonly QueueTurn[], focus: Focus): Promise<unknown>;
  move(from: number, to: number): void;
}

/** Changes of the queue, one after the other. The focus stays with the prompt, or goes to its neighbour. */
export function useQueueChanges(list: RefObject<HTMLElement | null>, ids: readonly string[]): Changes {
  const { requeue } = useVerbs();
  const [isBusy, setBusy] = useState(false);
  const busy = useRef(false);
  // Keys that were pressed while a move was on its way: by how many places the same prompt is moved next.
  const further = useRef(0);
  const finish = () => {
    busy.current = false;
    // A prompt that was edited or moved is another turn now, in another row.
    flushSync(() => setBusy(false));
  };
  /** Returns the ids of the new queue; null: nothing was changed. */
  const change = async (wanted: readonly QueueTurn[], focus: Focus): Promise<readonly string[] | null> => {
    if (busy.current) return null;
    const hadFocus = list.current?.contains(document.activeElement) ?? false;
    busy.current = true;
    setBusy(true);
    try {
      const queue = (await requeue(wanted)).queue.map(({ turnId }) => turnId);
      finish();
      if (hadFocus) focusRow(queue[Math.min(focus.place, queue.length - 1)], focus.control);
      return queue;
    } catch (error) {
      finish();
      sayError(error);
      return null;
    }
  };
  const moveIn = async (queue: readonly string[], from: number, to: number): Promise<void> => {
    if (from === to || to < 0 || to >= queue.length) return;
    const next = await change(queueOf(moved(queue, from, to)), { place: to, control: to < from ? 'up' : 'down' });
    const by = further.current;
    further.current = 0;
    if (next !== null) await moveIn(next, to, Math.max(0, Math.min(next.length - 1, to + by)));
  };
  const move = (from: number, to: number) => {
    if (busy.current) further.current += Math.sign(to - from);
    else void moveIn(ids, from, to);
  };
  return { isBusy, change, move };
}

/** Focuses a control of a row, or the next best one. Without a row: the composer. */
function focusRow(turnId: string | undefined, control: QueueControl): void {
  const row = turnId === undefined ? null : document.querySelector(`[data-queued="${turnId}"]`);
  if (row === null) {
    focusComposer();
    return;
  }
  const buttons = [...row.querySelectorAll<HTMLButtonElement>('button:enabled')].filter((one) => one.checkVisibility());
  const wanted = buttons.find(({ dataset }) => dataset.control === control);
  (wanted ?? buttons.find(({ dataset }) => dataset.control !== 'remove') ?? buttons[0])?.focus();
}
