import type { ThroughlineClient } from 'throughline/client';

/** What somebody fills in for a new conversation. Empty: not set. */
export interface Beginning {
  readonly title: string;
  readonly key: string;
  readonly cwd: string;
  /** Works in a worktree of the repository that the directory is in. */
  readonly worktree: boolean;
}

/** Makes it; its id. A key that exists is that conversation, unless its directory is another one: then `refused`. */
export async function createConversation(
  tl: ThroughlineClient,
  from: Beginning,
  agent: string | null,
): Promise<string> {
  const { title, key, cwd, worktree } = from;
  const given = Object.entries({ title, key, cwd, agent: agent ?? '' }).filter(([, value]) => value.trim() !== '');
  const { id } = await tl.engine.ensure({
    ...Object.fromEntries(given.map(([name, value]) => [name, value.trim()])),
    ...(worktree && cwd.trim() !== '' && { worktree }),
  });
  return id;
}
