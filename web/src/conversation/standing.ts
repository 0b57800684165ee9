import type { Conversation, ConversationState, Task } from 'throughline/client';
import type { ChainCheck } from '../../../src/core/event.ts';
import { lostInWords } from '../../../src/core/loss.ts';
import { TASK_KEY } from '../../../src/core/tasks/task.ts';

interface Now {
  /** A question waits for an answer. */
  readonly asks: boolean;
  readonly isRunning: boolean;
  readonly isQueued: boolean;
}

const OPEN: readonly ConversationState[] = ['asks', 'running', 'queued'];

/** The state of a conversation. `read`: its state when it was last read, after the last turn. `Now` is from events, which are newer. */
export function stateNow(read: ConversationState, { asks, isRunning, isQueued }: Now): ConversationState {
  if (asks) return 'asks';
  if (isRunning) return 'running';
  if (isQueued) return 'queued';
  return OPEN.includes(read) ? 'idle' : read;
}

/** The address of the task that works in a conversation; null: none does. Of several tasks of a milestone, the newest. */
export function taskPathOf(
  { id, key }: Pick<Conversation, 'id' | 'key'>,
  tasks: readonly Pick<Task, 'id' | 'progress'>[],
): string | null {
  const task = tasks.find(({ progress }) => progress.conversationId === id);
  if (task !== undefined) return `/tasks/${task.id}`;
  return key?.startsWith(TASK_KEY) ? `/tasks/${key.slice(TASK_KEY.length)}` : null;
}

/** The result of a check of the hash chain, as a sentence. */
export function chainVerdict({ broken, lost }: ChainCheck): { readonly isIntact: boolean; readonly text: string } {
  if (broken !== null) return { isIntact: false, text: `Event ${broken}, or one before it, was changed.` };
  if (lost === undefined) return { isIntact: true, text: 'No event was changed, removed or added.' };
  return { isIntact: false, text: lostInWords(lost) };
}

/** A name for the file of an export that every system allows. */
export function fileName(title: string): string {
  const plain = title.normalize('NFKD').replace(/[^\w.-]+/g, '-');
  return `${plain.replace(/^[-.]+|[-.]+$/g, '').slice(0, 80) || 'conversation'}.json`;
}
