import type { ThroughlineClient } from 'throughline/client';

/** What somebody fills in for a new conversation. Empty: not set. */
export interface Beginning {
  readonly title: string;
  readonly key: string;
  readonly cwd: string;
  /** Work in a new worktree of the repository of the directory. */
  readonly worktree: boolean;
}

/** Creates the conversation and returns its id. If the key exists, returns that conversation, or throws `refused` if its directory differs. */
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
