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

/** Null: the conversation works in a directory of its own. */
export function projectOf({ project }: Pick<Conversation, 'project'>): Project | null {
  if (project === null) return null;
  const { path, name } = project;
  return { path, name, at: shortened(path.slice(0, Math.max(path.lastIndexOf('/'), 0))) };
}

/** The project of a task, by its directory. */
export function projectAt(cwd: string | null): Project | null {
  if (cwd === null) return null;
  const path = cwd.replace(/\/+$/, '') || '/';
  return projectOf({ project: { path, name: path.slice(path.lastIndexOf('/') + 1) || '/' } });
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
