import { NO_USAGE } from '../../../src/core/turn/usage.ts';
import type { ExportedConversation, TurnRecord } from '../../../src/index.ts';
import { acknowledgement } from '../../../src/testing/index.ts';
import { codeword } from './agent-home.ts';

/** An exported conversation with another agent: one turn for each codeword. */
export function exportedConversation(words: readonly string[]): ExportedConversation {
  const records = words.map((word, i): TurnRecord => {
    const prompt = codeword(word);
    return {
      version: 1,
      n: i + 1,
      agent: 'another',
      sessionId: null,
      outcome: 'completed',
      prompt: [{ type: 'text', text: prompt }],
      parts: [{ type: 'text', text: acknowledgement(prompt) }],
      failure: null,
      usage: NO_USAGE,
      startedAt: i,
      endedAt: i,
    };
  });
  const conversation = { key: null, title: 'Words', agent: null, restore: {} };
  return { format: 'throughline.conversation', version: 1, conversation, records, sessions: [] };
}
