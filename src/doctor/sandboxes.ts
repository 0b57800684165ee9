import { lstat, mkdir, readdir, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { ThroughlineError } from '../core/errors.ts';
import type { Check } from './parts.ts';

/** Ids of conversations, and hashes of the names that several share. Whatever else lies there is not ours. */
const OURS = /^(?:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9a-f]{32})$/;

/** Directories of conversations that are not in the store. They may hold work, so they are put aside and never deleted. */
export const checkSandboxes: Check = async ({ sandboxes: { root, isOurs, aside } }, census) => {
  const known = new Set(census.sandboxes);
  const names = await readdir(root).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return [];
    throw error;
  });
  const orphaned = names.filter((name) => OURS.test(name) && !known.has(name));
  return orphaned.map((name) => ({
    check: 'sandboxes',
    subject: `directory ${join(root, name)}`,
    problem: isOurs ? 'No conversation has it.' : 'No conversation here has it; one of another data home may.',
    remedy: isOurs ? `Move it to ${aside}.` : null,
    repair: () => putAside(join(root, name), aside, name),
  }));
};

async function putAside(path: string, aside: string, name: string): Promise<void> {
  try {
    await mkdir(aside, { recursive: true, mode: 0o700 });
    await rename(path, await unusedName(join(aside, name)));
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException;
    const why = code === 'EXDEV' ? 'it lies on another file system' : message;
    throw new ThroughlineError('refused', `It cannot be moved there: ${why}. Move it by hand.`, { cause });
  }
}

/** One of that name may have been put aside before, and is kept. */
async function unusedName(path: string): Promise<string> {
  for (let n = 1; ; n += 1) {
    const name = n === 1 ? path : `${path}.${n}`;
    if ((await lstat(name).catch(() => null)) === null) return name;
  }
}
