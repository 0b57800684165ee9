import { readFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { chunkText } from '../../../core/turn/update.ts';
import { asObject } from '../connection/capabilities.ts';
import type { Quirks } from './description.ts';

/*
 * pi-acp (0.0.34) tells nothing of what goes wrong between pi and its model: it answers `end_turn` also after an error. What it
 * says about itself it sends as messages without ids, between those of the model. pi's own session file has the error.
 */

const RETRYING = /^Retrying \(attempt \d+\/\d+, waiting \d+s\)\.\.\.$/;
const NOTICES: readonly string[] = [
  // Also after the last attempt has failed.
  'Retry finished, resuming.',
  'Context nearing limit, running automatic compaction...',
  'Automatic compaction finished; context was summarized to continue the session.',
];

export const PI_QUIRKS: Quirks = {
  banner(response) {
    const { startupInfo } = asObject(asObject(response._meta).piAcp);
    return typeof startupInfo === 'string' ? startupInfo : null;
  },
  // It takes these characters for the end of a line when it reads what pi answers.
  hangsOn: /[\u2028\u2029]/,
  aboutAnswer(update) {
    const text = update.sessionUpdate === 'agent_message_chunk' ? chunkText(update) : null;
    if (text === null) return null;
    if (RETRYING.test(text)) return 'retry';
    return NOTICES.includes(text) ? 'notice' : null;
  },
  async failureOf(session, { env }) {
    try {
      const home = join(env.HOME ?? homedir(), '.pi');
      const map = asObject(JSON.parse(await readFile(join(home, 'pi-acp', 'session-map.json'), 'utf8')));
      const { sessionFile } = asObject(asObject(map.sessions)[session]);
      return typeof sessionFile === 'string' ? lastError(await readFile(sessionFile, 'utf8')) : null;
    } catch {
      // Another version keeps its sessions elsewhere: nothing shows an error.
      return null;
    }
  },
};

/** Why the last message of a session file is none of the model; null: it is one. Of a long file, only the end is parsed. */
function lastError(file: string): string | null {
  const lines = file.trimEnd().split('\n');
  let last: Readonly<Record<string, unknown>> = {};
  while (last.role === undefined && lines.length > 0) last = messageIn(lines.pop() ?? '');
  if (last.role !== 'assistant' || last.stopReason !== 'error') return null;
  const why = typeof last.errorMessage === 'string' ? last.errorMessage : 'pi does not say why';
  return `the model’s answer failed: ${why}`;
}

function messageIn(line: string): Readonly<Record<string, unknown>> {
  const { type, message } = asObject(JSON.parse(line));
  return type === 'message' ? asObject(message) : {};
}
