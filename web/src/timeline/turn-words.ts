import type { RecordPart, Turn } from 'throughline/client';
import { tokensOf } from '../../../src/core/limits/budget.ts';
import { retryText } from '../../../src/core/turn/update.ts';
import type { Notice, TurnItem } from '../data/conversation/model.ts';
import { count, duration } from '../ui/time.tsx';

/** What a turn that has not ended is doing. */
export function doing({ turn, parts, restoring }: Pick<TurnItem, 'turn' | 'parts' | 'restoring'>): string {
  if (turn.stranded !== null) return turn.stranded.message;
  if (turn.cancelRequested) return 'Stopping';
  if (turn.state === 'queued') return turn.delayed?.message ?? 'Queued';
  if (turn.state === 'waiting') return 'Waiting for your answer';
  if (restoring !== null) return 'Restoring context';
  const last = parts.at(-1);
  if (last === undefined) return turn.sent === null ? 'Starting' : 'Waiting for the agent';
  return DOING[last.type](last);
}

const DOING: Readonly<Record<RecordPart['type'], (part: RecordPart) => string>> = {
  text: () => 'Answering',
  thought: () => 'Thinking',
  tool: (part) => (part.type === 'tool' && part.status === 'unknown' ? `Running ${part.name}` : 'Working'),
};

export function noticeText(notice: Notice): string {
  switch (notice.kind) {
    case 'stalled': {
      const what = notice.tool === null ? 'No output from the agent' : `${notice.tool} is running without output`;
      const end = notice.endsInMs === null ? '' : ` Without output, the turn ends in ${duration(notice.endsInMs)}.`;
      return `${what} for ${duration(notice.silentMs)}.${end}`;
    }
    case 'retrying':
      return `Trying again: ${notice.message}`;
    case 'unanswered':
      return `${retryText(notice.retry)}.`;
    case 'locked':
      return `The agent's session is in use elsewhere. Waiting for ${duration(notice.ms)}.`;
  }
}

/** The facts below an ended turn. */
export function factsOf(turn: Turn): string[] {
  const { usage, startedAt, endedAt, imported, recovered, retryOf } = turn;
  const tokens = tokensOf(usage);
  return [
    turn.agent,
    startedAt !== null && endedAt !== null && !imported ? duration(endedAt - startedAt) : '',
    tokens > 0 ? `${count(tokens)} tokens` : '',
    usage.unknownCosts === undefined ? '' : 'cost unknown',
    imported ? 'imported' : '',
    recovered ? 'outcome read from the agent’s storage' : '',
    retryOf !== null ? 'retry' : '',
  ].filter((fact) => fact !== '');
}

export type ToolState = 'running' | 'completed' | 'failed' | 'unknown';

/** A tool without an outcome is running while its turn is. */
export function toolState(status: 'completed' | 'failed' | 'unknown', isOpen: boolean): ToolState {
  return status === 'unknown' && isOpen ? 'running' : status;
}
