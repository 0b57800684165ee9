import { useEffect, useMemo, useState } from 'react';
import type { Directories } from 'throughline/client';
import { useShallow } from 'zustand/react/shallow';
import { useList } from '../../data/list.ts';
import { usePreference } from '../../data/preferences.ts';
import { useClient, useMay } from '../../data/session.ts';
import { isBelow, type Project, projectsOf } from './projects.ts';

/** Where a new conversation works. */
export interface Place {
  /** Whether one may choose: to name a directory needs `admin`. */
  readonly mayChoose: boolean;
  readonly projects: readonly Project[];
  /** Null: a new, empty directory. */
  readonly cwd: string | null;
  choose(cwd: string | null): void;
  /** The roots below which one may browse, and the home; null: not known, or there are none. */
  readonly roots: Pick<Directories, 'roots' | 'home'> | null;
  /** The repository that the directory is in; null: none is known. */
  readonly repository: Directories['repository'];
  /** In a worktree of its own. */
  readonly worktree: boolean;
  setWorktree(worktree: boolean): void;
}

/** At first the directory of the conversation that changed last. A worktree of its own is the default wherever there can be one. */
export function usePlace(): Place {
  const mayChoose = useMay('admin');
  const known = useList(useShallow(({ known }) => [...known.values()]));
  const projects = useMemo(() => (mayChoose ? projectsOf(known) : []), [mayChoose, known]);
  const [chosen, choose] = useState<string | null | undefined>(undefined);
  const [asIs, setAsIs] = usePreference('new.as-is');
  const newest = useMemo(() => known.toSorted((a, b) => b.updatedAt - a.updatedAt)[0]?.project?.path, [known]);
  const cwd = mayChoose ? (chosen === undefined ? (newest ?? null) : chosen) : null;
  const roots = useDirectories(mayChoose, null);
  const isListed = cwd !== null && roots !== null && isBelow(cwd, roots.roots);
  const repository = useDirectories(isListed, cwd)?.repository ?? null;
  const canHaveWorktree = repository !== null && repository.noWorktree === null;
  return {
    ...{ mayChoose, projects, cwd, choose, roots, repository },
    worktree: canHaveWorktree && asIs === null,
    setWorktree: (worktree) => setAsIs(worktree ? null : 'yes'),
  };
}

/** The directories in one of them, or in the first root; null: not read yet, or not listed by this server. */
function useDirectories(isWanted: boolean, path: string | null): Directories | null {
  const tl = useClient();
  const [read, setRead] = useState<{ path: string | null; found: Directories } | null>(null);
  useEffect(() => {
    if (!isWanted) return;
    let isCurrent = true;
    tl.directories(path === null ? {} : { path }).then(
      (found) => isCurrent && setRead({ path, found }),
      () => {}, // a server may list none: any path can still be typed
    );
    return () => {
      isCurrent = false;
    };
  }, [tl, isWanted, path]);
  return isWanted && read?.path === path ? read.found : null;
}
