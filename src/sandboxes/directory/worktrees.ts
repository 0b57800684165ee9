import { join } from 'node:path';
import { ThroughlineError } from '../../core/errors.ts';
import type { Worktrees } from '../../ports/sandbox.ts';
import type { LocalSandboxSettings } from '../shared/local-sandbox.ts';
import { refuseBorrowed } from './git.ts';
import {
  forgetWorktree,
  isThere,
  knownWorktree,
  openWorktree,
  repositoryAt,
  type TreeUse,
  unsavedIn,
  type Worktree,
} from './worktree.ts';
import { discardChanges, keepChanges } from './worktree-keep.ts';

/** The worktrees in the folders of sandboxes. `folderOf`: the folder of a sandbox id. */
export function worktreesAt(folderOf: (id: string) => string, byDefault: boolean, use: TreeUse): Worktrees {
  return {
    byDefault,
    async check(cwd) {
      await repositoryAt(cwd, use);
    },
    async unsaved(id) {
      const known = await knownWorktree(folderOf(id));
      return known === null ? 0 : unsavedIn(known, use);
    },
    keep: async (id, keep) => keepChanges(await knownIn(folderOf(id), use), keep, use),
    discard: async (id) => discardChanges(await knownIn(folderOf(id), use)),
  };
}

/** Throws `not_found` when it was not created yet. */
export async function knownIn(folder: string, { isolated }: TreeUse): Promise<Worktree> {
  const known = await knownWorktree(folder);
  if (known !== null && isolated) await refuseBorrowed(join(known.common, 'objects'));
  if (known !== null && (await isThere(known.tree))) return known;
  throw new ThroughlineError('not_found', 'The agent of this conversation has not worked in its worktree yet.');
}

/** The parts of the repository that git commands of an agent need. Its settings and hooks are not among them. */
const SHARED = ['HEAD', 'objects', 'refs', 'packed-refs', 'info', 'shallow'];

type Opened = Pick<LocalSandboxSettings, 'work' | 'around'>;

export async function openWorktreeIn(folder: string, id: string, cwd: string | null, use: TreeUse): Promise<Opened> {
  if (cwd === null) throw new Error(`the worktree ${id} has no repository`);
  return openedWorktree(await openWorktree(folder, id, cwd, use));
}

/** The paths of a worktree that its sandbox needs. */
export function openedWorktree({ tree, prefix, common, admin }: Worktree): Opened {
  const read = [admin, ...SHARED.map((name) => join(common, name))];
  return { work: join(tree, prefix), around: { write: [tree], read, fixed: [join(tree, '.git')] } };
}

/** Throws `refused` when changes would be lost. */
export async function removeUnlessUnsaved(folder: string, discard: boolean, use: TreeUse): Promise<void> {
  const known = await knownWorktree(folder).catch((error: unknown) => {
    // For a copy, only the files are deleted: git has the other one on record.
    if (discard && error instanceof ThroughlineError) return null;
    throw error;
  });
  if (known === null) return;
  const unsaved = discard ? 0 : await unsavedIn(known, use);
  if (unsaved > 0) throw unsavedChanges(unsaved);
  await forgetWorktree(known);
}

function unsavedChanges(count: number): ThroughlineError {
  const files = count === 1 ? 'A file' : `${count} files`;
  return new ThroughlineError(
    'refused',
    `${files} in the worktree of this conversation changed since its last commit.`,
    {
      hint: 'Commit them ("throughline changes KEY --commit MESSAGE"), or discard them.',
    },
  );
}
