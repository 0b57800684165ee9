import { join } from 'node:path';
import { chunkText } from '../../../core/turn/update.ts';
import { asObject, parseObject } from '../../shared/json.ts';
import type { Quirks } from './description.ts';
import { endOf, homeOf } from './surroundings.ts';

/*
 * Copilot (1.0) reports errors of its model as text of the answer, without message ids, and answers `end_turn` also when its last
 * attempt has failed. Its own file of events has the error.
 */

const RETRYING = /^Info: (.+) Retrying\.\.\.$/;
/** The events that come after an error fit in here. */
const END_BYTES = 65_536;

export const COPILOT_QUIRKS: Quirks = {
  // Seen in 1.0.102. Its answers do not show it.
  addsUpTokens: true,
  aboutAnswer(update) {
    const text = update.sessionUpdate === 'agent_message_chunk' ? chunkText(update) : null;
    const [, reason] = RETRYING.exec(text ?? '') ?? [];
    return reason === undefined ? null : { attempt: null, of: null, inMs: null, status: null, reason };
  },
  async failureOf(session, surroundings) {
    try {
      const folder = await surroundings.sandbox.folder(join(homeOf(surroundings), '.copilot', 'session-state'));
      return errorIn((await endOf(folder, `${session}/events.jsonl`, END_BYTES)) ?? '');
    } catch {
      // Another version keeps its sessions elsewhere.
      return null;
    }
  },
};

/** Why the model has not answered the last prompt; null: it has answered. */
function errorIn(end: string): string | null {
  for (const line of end.trimEnd().split('\n').toReversed()) {
    // The first line of the end may be cut.
    const { type, data } = parseObject(line) ?? {};
    if (type === 'user.message' || type === 'assistant.message') return null;
    const { message } = asObject(data);
    if (type === 'session.error') return `the model’s answer failed: ${String(message ?? 'Copilot gave no reason')}`;
  }
  return null;
}
