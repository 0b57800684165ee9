import { isAbsolute, join, relative } from 'node:path';
import { chunkText } from '../../../core/turn/update.ts';
import { asObject } from '../../shared/json.ts';
import type { Quirks } from './description.ts';
import { endOf, homeOf, type Surroundings } from './surroundings.ts';

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
  async failureOf(session, surroundings) {
    try {
      const file = await sessionFile(session, surroundings);
      return file && lastError(file);
    } catch {
      // Another version keeps its sessions elsewhere: nothing shows an error.
      return null;
    }
  },
};

/** The map has a line for every session. */
const MOST_MAP_BYTES = 16 * 1024 * 1024;
/** The last messages of a session fit in here. */
const END_BYTES = 4 * 1024 * 1024;

/** The end of pi's file for a session; null: there is none. pi could name any file, so only one in its own folders is read. */
async function sessionFile(session: string, surroundings: Surroundings): Promise<string | null> {
  const { sandbox, env } = surroundings;
  const home = join(homeOf(surroundings), '.pi');
  const map = await (await sandbox.folder(home)).read('pi-acp/session-map.json', { most: MOST_MAP_BYTES });
  if (map === null) return null;
  const { sessions } = asObject(JSON.parse(Buffer.from(map.bytes).toString('utf8')));
  const { sessionFile: file } = asObject(asObject(sessions)[session]);
  if (typeof file !== 'string') return null;
  for (const root of [home, env.PI_CODING_AGENT_DIR ?? home, env.PI_CODING_AGENT_SESSION_DIR ?? home]) {
    const way = relative(root, file);
    if (isAbsolute(root) && !way.startsWith('..') && !isAbsolute(way)) {
      return endOf(await sandbox.folder(root), way, END_BYTES);
    }
  }
  return null;
}

/** Why the last message of a session file is not from the model; null: it is. Of a long file, only the end is parsed. */
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
