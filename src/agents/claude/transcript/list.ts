import { constants } from 'node:fs';
import { open, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { isObject } from '../../../core/content.ts';
import type { NativeSession } from '../../../ports/agent.ts';

/** The first words of a person are near the beginning. */
const LOOKED_AT = 64 * 1024;
const SESSION = /^([0-9a-f-]{36})\.jsonl$/;

/** The sessions whose transcripts lie in a project's folder. */
export async function listTranscripts(folder: string): Promise<NativeSession[]> {
  const names = await readdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return [];
    throw error;
  });
  const ids = names.flatMap((name) => SESSION.exec(name)?.[1] ?? []);
  const sessions: NativeSession[] = [];
  // One after the other: there may be thousands, and all at once they would be more open files than a process may have.
  for (const id of ids) {
    const session = await look(join(folder, `${id}.jsonl`), id);
    if (session !== null) sessions.push(session);
  }
  return sessions;
}

/** Null: there is nothing in it that anybody said, or it is gone, or something else: a pipe must not keep us waiting. */
async function look(file: string, id: string): Promise<NativeSession | null> {
  const handle = await open(file, constants.O_RDONLY | constants.O_NONBLOCK).catch(() => null);
  if (handle === null) return null;
  try {
    const stats = await handle.stat();
    if (!stats.isFile()) return null;
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(LOOKED_AT), 0, LOOKED_AT, 0);
    const title = firstWords(buffer.toString('utf8', 0, bytesRead));
    if (title === null && bytesRead < LOOKED_AT) return null;
    return { id, title, updatedAt: Math.round(stats.mtimeMs) };
  } finally {
    await handle.close();
  }
}

function firstWords(text: string): string | null {
  for (const line of text.split('\n')) {
    const { type, message, isMeta } = parse(line);
    if (type !== 'user' || isMeta === true || !isObject(message)) continue;
    const { content } = message;
    const said = Array.isArray(content)
      ? content.find((block) => isObject(block) && block.type === 'text')?.text
      : content;
    if (typeof said === 'string') return said;
  }
  return null;
}

/** The last line may be cut off. */
function parse(line: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(line);
    return isObject(value) ? value : {};
  } catch {
    return {};
  }
}
