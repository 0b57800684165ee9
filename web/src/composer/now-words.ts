import type { RecordPart } from 'throughline/client';
import type { TurnItem } from '../data/conversation/model.ts';
import { doing } from '../timeline/turn-words.ts';

/** What a running turn does now. */
export interface NowWords {
  readonly words: string;
  /** The command, file or other target of the tool that is running; null: no tool is running, or it named none. */
  readonly target: string | null;
}

export function nowWords(item: Pick<TurnItem, 'turn' | 'parts' | 'restoring'>): NowWords {
  const { turn, parts, restoring } = item;
  const last = parts.at(-1);
  const isSpecial = turn.stranded !== null || turn.cancelRequested || turn.state !== 'running' || restoring !== null;
  if (isSpecial || last === undefined) return { words: doing(item), target: null };
  return wordsOf(last);
}

function wordsOf(part: RecordPart): NowWords {
  if (part.type === 'text') return { words: 'Writing', target: null };
  if (part.type === 'thought') return { words: 'Thinking', target: null };
  if (part.status !== 'unknown') return { words: 'Working', target: null };
  const isCommand = part.kind === 'execute' && part.target !== null;
  return { words: isCommand ? 'Runs' : part.name, target: part.target };
}
