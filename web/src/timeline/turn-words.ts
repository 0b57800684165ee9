import type { RecordPart, Turn, Usage } from 'throughline/client';
import { tokensOf } from '../../../src/core/limits/budget.ts';
import { retryText } from '../../../src/core/turn/update.ts';
import type { Notice, TurnItem } from '../data/conversation/model.ts';
import { agentName } from '../ui/agent-name.ts';
import { duration } from '../ui/time.tsx';

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

/** The facts below an ended turn: who answered, how long it took, and what it cost. */
export function factsOf(turn: Turn): string[] {
  const { agent, options, usage, startedAt, endedAt, imported, recovered, retryOf } = turn;
  const tokens = tokensOf(usage);
  const model = options.model ?? options.kept?.model;
  return [
    model === undefined ? agentName(agent) : `${agentName(agent)} · ${model}`,
    startedAt !== null && endedAt !== null && !imported ? duration(endedAt - startedAt) : '',
    tokens > 0 ? `${tokens.toLocaleString('en')} tokens` : '',
    priceOf(usage),
    recovered ? 'outcome read from the agent’s storage' : '',
    retryOf !== null ? 'retry' : '',
  ].filter((fact) => fact !== '');
}

/** `$0.31`; empty: nothing shows that there was a price. */
function priceOf(usage: Usage): string {
  const { costMicros, unknownCosts = 0, unreportedCosts = 0 } = usage;
  if (unknownCosts + unreportedCosts > 0) return 'price unknown';
  if (costMicros === 0) return tokensOf(usage) > 0 ? 'price unknown' : '';
  const dollars = costMicros / 1_000_000;
  return `$${dollars.toFixed(dollars < 0.01 ? 4 : 2)}`;
}

export type ToolState = 'running' | 'completed' | 'failed' | 'unknown';

/** A tool without an outcome is running while its turn is. */
export function toolState(status: 'completed' | 'failed' | 'unknown', isOpen: boolean): ToolState {
  return status === 'unknown' && isOpen ? 'running' : status;
}
