import type { ExportedConversation } from '../../src/core/portable.ts';
import { EXPORT_FORMAT, EXPORT_VERSION } from '../../src/core/portable.ts';
import { DEFAULT_RESTORE } from '../../src/core/restore/restore-settings.ts';
import type { TurnRecord } from '../../src/core/turn/record.ts';
import { NO_USAGE } from '../../src/core/turn/usage.ts';

const SENTENCE = 'A turn of an ordinary conversation says about as much as this, and then a little more. ';

/** The prompt and the reply of a turn. */
export interface Words {
  readonly prompt: string;
  readonly reply: string;
}

/** A conversation with this number of turns, in the format of `export`. `words`: of each turn. Left out: about 1 KB of prompt and answer. */
export function history(turns: number, agent: string, words?: readonly Words[]): ExportedConversation {
  return {
    format: EXPORT_FORMAT,
    version: EXPORT_VERSION,
    conversation: { key: null, title: 'A long one', agent, restore: DEFAULT_RESTORE },
    records: Array.from({ length: turns }, (_, i) => record(i + 1, agent, words?.[i])),
    sessions: [],
  };
}

function record(n: number, agent: string, words?: Words): TurnRecord {
  const at = 1_700_000_000_000 + n * 60_000;
  return {
    version: 1,
    n,
    agent,
    sessionId: null,
    outcome: 'completed',
    prompt: [{ type: 'text', text: words?.prompt ?? `Question ${n}. ${SENTENCE.repeat(4)}` }],
    parts: [{ type: 'text', text: words?.reply ?? `Answer ${n}. ${SENTENCE.repeat(8)}` }],
    failure: null,
    usage: { ...NO_USAGE, inputTokens: 100, outputTokens: 200, modelCalls: 1 },
    startedAt: at,
    endedAt: at + 5_000,
  };
}
