import { constants } from 'node:fs';
import { open, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { NativeSession } from '../../../ports/agent.ts';
import { blocksOf, parseEntry } from './entries.ts';

/** The first prompt is near the beginning. */
const TITLE_BYTES = 64 * 1024;
const SESSION = /^([0-9a-f-]{36})\.jsonl$/;

/** The sessions whose transcripts lie in a project's folder. */
export async function listTranscripts(folder: string): Promise<NativeSession[]> {
  const names = await readdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return [];
    throw error;
  });
  const ids = names.flatMap((name) => SESSION.exec(name)?.[1] ?? []);
  const sessions: NativeSession[] = [];
  // One after the other: opening thousands at once would exceed the limit of open files.
  for (const id of ids) {
    const session = await look(join(folder, `${id}.jsonl`), id);
    if (session !== null) sessions.push(session);
  }
  return sessions;
}

/** Null: it holds no prompt, does not exist any more, or is not a file (a pipe must not block us). */
async function look(file: string, id: string): Promise<NativeSession | null> {
  await using handle = await open(file, constants.O_RDONLY | constants.O_NONBLOCK).catch(() => null);
  const stats = await handle?.stat();
  if (!handle || !stats?.isFile()) return null;
  const { buffer, bytesRead } = await handle.read(Buffer.alloc(TITLE_BYTES), 0, TITLE_BYTES, 0);
  const title = firstWords(buffer.toString('utf8', 0, bytesRead));
  if (title === null && bytesRead < TITLE_BYTES) return null;
  return { id, title, updatedAt: Math.round(stats.mtimeMs) };
}

function firstWords(text: string): string | null {
  for (const line of text.split('\n')) {
    const entry = parseEntry(line);
    if (entry?.type !== 'user' || entry.isMeta === true) continue;
    const said = blocksOf(entry.message).find(({ type }) => type === 'text')?.text;
    if (typeof said === 'string') return said;
  }
  return null;
}
