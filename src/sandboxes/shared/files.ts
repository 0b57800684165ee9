import { ThroughlineError } from '../../core/errors.ts';
import { bestFiles, type Files, isLookedInto } from '../../core/public/files.ts';
import type { Entry, Folder } from '../../ports/sandbox.ts';

/** Limits of a search: a directory may be a whole disk. */
const MOST_ENTRIES = 20_000;
const MOST_DEPTH = 20;
const MOST_MS = 1_000;

/** Control characters cannot be typed, and would break the line that shows the name. */
const CONTROLS = /\p{Cc}/u;

/** The files below a folder that match, nearest folders first. Links are neither listed nor followed. */
export async function filesIn(
  root: Folder,
  match: string,
  { most = MOST_ENTRIES, ms = MOST_MS }: { readonly most?: number; readonly ms?: number } = {},
): Promise<Files> {
  const until = performance.now() + ms;
  const [paths, folders] = [[] as string[], ['']];
  let [looked, isWhole] = [0, true];
  for (const folder of folders) {
    if (looked > most || performance.now() > until) return bestFiles(paths, match, false);
    const entries = await entriesOf(root, folder);
    isWhole &&= entries !== null;
    for (const { name, kind } of entries ?? []) {
      looked += 1;
      if (looked > most) break;
      if (CONTROLS.test(name) || !(kind === 'file' || kind === 'folder')) continue;
      const path = `${folder}${name}${kind === 'folder' ? '/' : ''}`;
      paths.push(path);
      if (kind === 'file' || !isLookedInto(path, match)) continue;
      if (path.split('/').length <= MOST_DEPTH) folders.push(path);
      else isWhole = false;
    }
  }
  return bestFiles(paths, match, isWhole && looked <= most);
}

/** Null: it cannot be read, or was replaced by something else meanwhile. */
async function entriesOf(root: Folder, folder: string): Promise<Entry[] | null> {
  try {
    return await root.list(folder.slice(0, -1));
  } catch {
    return null;
  }
}

export function directoryMissing(cwd: string, cause: unknown): ThroughlineError {
  return new ThroughlineError('not_found', `The directory of this conversation, ${cwd}, does not exist.`, {
    hint: 'It existed when the conversation was created. Create it again, or fork the conversation into another one.',
    cause,
  });
}
