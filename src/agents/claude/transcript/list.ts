import type { NativeSession } from '../../../ports/agent.ts';
import { blocksOf, parseEntry } from './entries.ts';
import type { SessionStorage } from './locate.ts';

/** The first prompt is near the beginning. */
const TITLE_BYTES = 64 * 1024;
const SESSION = /^([0-9a-f-]{36})\.jsonl$/;

/** The sessions of a working directory. */
export async function listTranscripts(storage: SessionStorage): Promise<NativeSession[]> {
  const entries = (await storage.folder.list(storage.path)) ?? [];
  const ids = entries.flatMap(({ name }) => SESSION.exec(name)?.[1] ?? []);
  const sessions: NativeSession[] = [];
  // One after the other: opening thousands at once would exceed the limit of open files.
  for (const id of ids) {
    const session = await describe(storage, id);
    if (session !== null) sessions.push(session);
  }
  return sessions;
}

/** Null: it holds no prompt, does not exist any more, or is not a file. */
async function describe({ fileOf }: SessionStorage, id: string): Promise<NativeSession | null> {
  const read = (await fileOf(id)?.read({ most: TITLE_BYTES })) ?? null;
  if (read === null) return null;
  const title = firstWords(Buffer.from(read.bytes).toString('utf8'));
  if (title === null && read.bytes.length < TITLE_BYTES) return null;
  return { id, title, updatedAt: read.modifiedAt };
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
