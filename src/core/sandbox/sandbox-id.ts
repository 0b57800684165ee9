/*
 * The id of a sandbox says whose it is and what it is: the id of its conversation; the same after "tree-", when its working directory is a
 * worktree of a git repository; or the hash of a name that several conversations share. It is pinned with the conversation (R8).
 */

const TREE = 'tree-';

/** How the folders for looks at agents begin. No id of a sandbox does. */
export const PROBE = '.probe-';

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
