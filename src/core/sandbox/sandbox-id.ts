import { ThroughlineError } from '../errors.ts';

/*
 * The id of a sandbox is one of three: the id of its conversation; the same after "tree-", when its working directory is a worktree of a git
 * repository; or the hash of a name that several conversations share. It never changes for a conversation (R8).
 */

const TREE = 'tree-';

/** The prefix of folders for probes of agents. No id of a sandbox begins with it. */
export const PROBE = '.probe-';

/** An id becomes a part of a path. Throws `refused` for one that is not safe there. */
export function checkedId(id: string): string {
  if (/^[A-Za-z0-9_-]{1,64}$/.test(id)) return id;
  throw new ThroughlineError('refused', `${JSON.stringify(id)} is not a valid sandbox id.`, {
    hint: 'Use 1 to 64 letters, digits, "-" and "_".',
  });
}

/** The sandbox of a conversation that works in a worktree. */
export function worktreeSandbox(conversation: string): string {
  return `${TREE}${conversation}`;
}

export function isWorktree(sandbox: string): boolean {
  return sandbox.startsWith(TREE);
}

/** No other conversation works in it. */
export function isOwnSandbox(sandbox: string, conversation: string): boolean {
  return sandbox === conversation || sandbox === worktreeSandbox(conversation);
}

/** The conversation that it belongs to, unless several share it. */
export function soleConversation(sandbox: string): string {
  return isWorktree(sandbox) ? sandbox.slice(TREE.length) : sandbox;
}

/** The branch of its worktree. */
export function branchOf(sandbox: string): string {
  return `throughline/${soleConversation(sandbox)}`;
}
