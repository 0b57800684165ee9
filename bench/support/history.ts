import type { ExportedConversation } from '../../src/core/portable.ts';
import { EXPORT_FORMAT, EXPORT_VERSION } from '../../src/core/portable.ts';
import { DEFAULT_RESTORE } from '../../src/core/restore/restore-settings.ts';
import type { TurnRecord } from '../../src/core/turn/record.ts';
import { NO_USAGE } from '../../src/core/turn/usage.ts';

const SENTENCE = 'A turn of an ordinary conversation says about as much as this, and then a little more. ';

/** A conversation of so many turns, each with about 1 KB of prompt and answer, as `export` would have written it. */
export function history(turns: number, agent: string): ExportedConversation {
  return {
    format: EXPORT_FORMAT,
    version: EXPORT_VERSION,
    conversation: { key: null, title: 'A long one', agent, restore: DEFAULT_RESTORE },
    records: Array.from({ length: turns }, (_, i) => record(i + 1, agent)),
    sessions: [],
  };
}

function record(n: number, agent: string): TurnRecord {
  const at = 1_700_000_000_000 + n * 60_000;
  return {
    version: 1,
    n,
    agent,
    sessionId: null,
    outcome: 'completed',
    prompt: [{ type: 'text', text: `Question ${n}. ${SENTENCE.repeat(4)}` }],
    parts: [{ type: 'text', text: `Answer ${n}. ${SENTENCE.repeat(8)}` }],
    failure: null,
    usage: { ...NO_USAGE, inputTokens: 100, outputTokens: 200, modelCalls: 1 },
    startedAt: at,
    endedAt: at + 5_000,
  };
}
