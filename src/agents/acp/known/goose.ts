import { chunkText } from '../../../core/turn/update.ts';
import type { Quirks } from './description.ts';

/** goose (1.50) reports in a message that the stream of its model broke, and answers `end_turn`. Its record does not show it. */
const BROKEN = /^Network error: .*\n\nPlease resend your message to try again\.$/s;

export const GOOSE_QUIRKS: Quirks = {
  // It has no login: a person tells it which model to use, and with which key.
  saysNotSetUp: /failed to resolve provider|no provider (?:is )?(?:set|configured)/i,
  aboutAnswer(update) {
    const text = update.sessionUpdate === 'agent_message_chunk' ? chunkText(update) : null;
    return text !== null && BROKEN.test(text) ? 'failed' : null;
  },
};
