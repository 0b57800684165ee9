import { bestFiles, type Files, isLookedInto } from '../../core/public/files.ts';
import type { Entry, Folder } from '../../ports/sandbox.ts';

/** So many entries are looked at, so deep, and for so long: a directory may be a whole disk. */
const MOST_LOOKED_AT = 20_000;
const MOST_DEEP = 20;
const MOST_MS = 1_000;

/** Nobody can type it, and it would break the line that it stands in. */
const CONTROLS = /\p{Cc}/u;

/** The files in a folder that fit `match`, out of the nearest ones. Links are neither listed nor followed. */
export async function filesIn(
  root: Folder,
  match: string,
  { most = MOST_LOOKED_AT, ms = MOST_MS }: { readonly most?: number; readonly ms?: number } = {},
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
      if (path.split('/').length <= MOST_DEEP) folders.push(path);
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
