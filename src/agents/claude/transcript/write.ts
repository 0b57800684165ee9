import { randomUUID } from 'node:crypto';
import { jsonLine } from '../../../core/input/visible.ts';
import type { Transcript } from './file.ts';
import type { SessionStorage } from './locate.ts';

/** An existing file is left as it is, and `detail` names it. */
interface Put {
  /** `same`: the file exists with this content. `exists`: it has another content. `failed`: it cannot be written. */
  readonly result: 'written' | 'same' | 'exists' | 'failed';
  readonly detail: string;
}

/**
 * Writes a transcript where Claude will look for it. Errors of the disk are returned, not thrown.
 *
 * Not synced to the disk: after a power cut the file may be short. The reader notices that, and the file can be written again.
 */
export async function putTranscript(file: Transcript, content: string | Uint8Array): Promise<Put> {
  try {
    const result = await file.put(content);
    return { result, detail: result === 'exists' ? `${file.name} is another transcript` : file.name };
  } catch (error) {
    return { result: 'failed', detail: error instanceof Error ? error.message : String(error) };
  }
}

/**
 * Checks that sessions can be written. Null: they can; otherwise the reason. Called before each turn: with a read-only config directory
 * Claude answers as usual, reports no error, and stores nothing.
 */
export async function probeWritable(storage: Pick<SessionStorage, 'folder' | 'path'>): Promise<string | null> {
  const { folder, path } = storage;
  try {
    const space = await folder.space(path);
    // With much free space no trial is needed. It takes as long as everything else before a prompt.
    if (space?.writable && space.freeBytes !== null && space.freeBytes > MUCH_SPACE_BYTES) return null;
    await tryToWrite(storage);
    return null;
  } catch (error) {
    return `cannot write to ${folder.path}/${path}, where Claude keeps its sessions (${reasonOf(error)})`;
  }
}

const MUCH_SPACE_BYTES = 256 * 1024 * 1024;
/** More than a few bytes: a full disk may still have space for an empty file. */
const PROBE = new Uint8Array(8_192);

async function tryToWrite({ folder, path }: Pick<SessionStorage, 'folder' | 'path'>): Promise<void> {
  const probe = `${path}/.probe.${randomUUID()}.tmp`;
  await folder.put(probe, PROBE);
  await folder.remove(probe);
}

/** The error of the system if there is one, without the name of our temporary file. */
function reasonOf(error: unknown): string {
  const { cause, message } = error as Error;
  return (cause instanceof Error ? cause.message : message).replace(/, \w+ '.*'$|\.$/, '');
}

/** Adds a line to a transcript that no process has open. Null: done; otherwise the reason why not. */
export async function appendLine(file: Transcript, entry: object): Promise<string | null> {
  try {
    return (await file.append(`${jsonLine(entry)}\n`)) ? null : `${file.name} does not exist`;
  } catch (error) {
    return `cannot write to ${file.name}: ${reasonOf(error)}`;
  }
}
