import { isAbsolute, join, relative } from 'node:path';
import { chunkText } from '../../../core/turn/update.ts';
import { asObject } from '../../shared/json.ts';
import type { Quirks } from './description.ts';
import { endOf, homeOf, type Surroundings } from './surroundings.ts';

/*
 * pi-acp (0.0.34) does not report errors between pi and its model: it answers `end_turn` also after an error. It sends notices of its
 * own as messages without ids, between those of the model. pi's own session file has the error.
 */

const RETRYING = /^Retrying \(attempt (\d+)\/(\d+), waiting (\d+)s\)\.\.\.$/;
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
  // It treats these characters as the end of a line when it reads pi's answers.
  hangsOn: /[\u2028\u2029]/,
  aboutAnswer(update) {
    const text = update.sessionUpdate === 'agent_message_chunk' ? chunkText(update) : null;
    if (text === null) return null;
    const [retrying, attempt, of, seconds] = RETRYING.exec(text) ?? [];
    if (retrying !== undefined) {
      const inMs = Number(seconds) * 1_000;
      return { attempt: Number(attempt), of: Number(of), inMs, status: null, reason: null };
    }
    return NOTICES.includes(text) ? 'notice' : null;
  },
  async failureOf(session, surroundings) {
    try {
      const end = await endOfSession(session, surroundings);
      return end && lastError(end);
    } catch {
      // Another version keeps its sessions elsewhere.
      return null;
    }
  },
};

/** The map has a line for every session. */
const MOST_MAP_BYTES = 16 * 1024 * 1024;
/** The last messages of a session fit in here. */
const END_BYTES = 4 * 1024 * 1024;

/** The end of pi's file for a session; null: there is none. The map could name any file, so only files in pi's own folders are read. */
async function endOfSession(session: string, surroundings: Surroundings): Promise<string | null> {
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

/** The error in the last message of a session; null: it is none. Parses only as much as it needs. */
function lastError(end: string): string | null {
  const lines = end.trimEnd().split('\n');
  let last: Readonly<Record<string, unknown>> = {};
  while (last.role === undefined && lines.length > 0) last = messageIn(lines.pop() ?? '');
  if (last.role !== 'assistant' || last.stopReason !== 'error') return null;
  const why = typeof last.errorMessage === 'string' ? last.errorMessage : 'pi gave no reason';
  return `the model’s answer failed: ${why}`;
}

function messageIn(line: string): Readonly<Record<string, unknown>> {
  const { type, message } = asObject(JSON.parse(line));
  return type === 'message' ? asObject(message) : {};
}
