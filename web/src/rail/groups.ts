import type { Conversation } from 'throughline/client';

/** What belongs together in the rail: the conversations of one directory. */
export interface Project {
  /** Its directory; empty: that of the conversations without one. */
  readonly path: string;
  readonly name: string;
  /** The directory that it is in, shortened. */
  readonly at: string;
}

export interface Group {
  readonly project: Project;
  readonly rows: readonly Conversation[];
}

const NO_PROJECT: Project = { path: '', name: 'Without a directory', at: '' };

/** Null: the conversation has no directory of its own choice. A worktree belongs to the directory that it was made from. */
export function projectOf({ cwd }: Pick<Conversation, 'cwd'>): Project | null {
  if (cwd === null) return null;
  const path = cwd.replace(/\/+$/, '') || '/';
  const end = path.lastIndexOf('/');
  return { path, name: path.slice(end + 1) || '/', at: shortened(path.slice(0, Math.max(end, 0))) };
}

/** `~` for a home directory, and the last two names of a longer path. */
function shortened(path: string): string {
  const short = path.replace(/^(\/home\/[^/]+|\/Users\/[^/]+|\/root)(?=\/|$)/, '~');
  const names = short.split('/');
  return names.length <= 3 ? short : `…/${names.slice(-2).join('/')}`;
}

/** By project, in the order of the rows, pinned ones first; those without a project are last. */
export function groupsOf(rows: readonly Conversation[]): readonly Group[] {
  const groups = new Map<string, { project: Project; rows: Conversation[] }>();
  for (const row of rows) {
    const project = projectOf(row) ?? NO_PROJECT;
    const group = groups.get(project.path) ?? { project, rows: [] };
    group.rows.push(row);
    groups.set(project.path, group);
  }
  const isPinned = ({ pinned }: Conversation) => pinned;
  const all = [...groups.values()].map(({ project, rows: own }) => ({
    project,
    rows: [...own.filter(isPinned), ...own.filter((row) => !isPinned(row))],
  }));
  return [
    ...all.filter(({ project }) => project !== NO_PROJECT),
    ...all.filter(({ project }) => project === NO_PROJECT),
  ];
}
