import type { Conversation } from 'throughline/client';

/** A directory in which conversations of this owner work. */
export interface Project {
  readonly path: string;
  readonly name: string;
  /** How many of the conversations that the page knows work there. */
  readonly conversations: number;
}

/** As many as there are keys for. */
const MOST = 9;

/** The projects of these conversations, most recently used first. */
export function projectsOf(conversations: Iterable<Pick<Conversation, 'project' | 'updatedAt'>>): Project[] {
  const projects = new Map<string, Project>();
  for (const { project } of [...conversations].sort((a, b) => b.updatedAt - a.updatedAt)) {
    if (project === null) continue;
    const known = projects.get(project.path) ?? { ...project, conversations: 0 };
    projects.set(project.path, { ...known, conversations: known.conversations + 1 });
  }
  return [...projects.values()].slice(0, MOST);
}

/** Those whose name or path contains the words. */
export function matchingProjects(projects: readonly Project[], words: string): readonly Project[] {
  const wanted = words.trim().toLowerCase();
  return projects.filter(({ path }) => path.toLowerCase().includes(wanted));
}

/** Whether the words are a path and not a part of a name. */
export function isPath(words: string): boolean {
  return /^(\/|~(\/|$)|[A-Za-z]:\\)/.test(words.trim());
}

/** A path with `~` for the home of whoever runs the server. */
export function shortPath(path: string, home: string | null): string {
  if (home === null || (path !== home && !path.startsWith(`${home}/`))) return path;
  return `~${path.slice(home.length)}`;
}

export function lastPart(path: string): string {
  return path.split(/[/\\]/).findLast((part) => part !== '') ?? path;
}

/** Whether a directory is one of the roots, or below one. */
export function isBelow(path: string, roots: readonly string[]): boolean {
  return roots.some((root) => path === root || path.startsWith(root.endsWith('/') ? root : `${root}/`));
}
