import type { PublicSandbox, PublicSandboxUse, SandboxView } from '../../core/public/sandbox.ts';
import type { ExecResult } from '../../core/sandbox/sandbox.ts';

/** The sandboxes of an owner: user, sandbox, conversation, session. Another owner's are `not_found`. */
export interface EngineSandboxes {
  /** Newest first, a page of 100 or of `limit`; `before` is the id of the last one of the previous page. */
  list(page?: SandboxPage): Promise<PublicSandbox[]>;
  /** How many there are, and how many bytes the measured ones have together. */
  diskUse(): Promise<SandboxesDiskUse>;
  /**
   * By its id or its name. `measure`: measures it now, unless that was done in the last 3 seconds; otherwise it has the size of the last
   * measurement. Throws `too_many` while 20 others, or 10 of the same owner, are measured or wait for it.
   */
  show(idOrName: string, options?: { measure?: boolean | undefined }): Promise<SandboxView>;
  /** Where a conversation works, and which session it used last. */
  of(conversation: string): Promise<PublicSandboxUse>;
  /** Makes the shared sandbox of this name if it is missing, and sets it up. Throws `refused` when a step fails. */
  open(name: string): Promise<PublicSandbox>;
  /**
   * Runs a command in it, as agents run there, for at most ten minutes with the set-up that it needs first. Throws `timed_out` when it is not
   * ready by then, and `agent_unavailable` when there is no such program or its machine is lost.
   */
  exec(idOrName: string, command: readonly string[]): Promise<ExecResult>;
  /**
   * Ends the sessions that wait for a prompt in it, and stops what keeps it running. The next turn reopens it. Throws `conflict` while a
   * turn or a task works in it.
   */
  rest(idOrName: string): Promise<PublicSandbox>;
  /**
   * Deletes it with everything in it. The next turn of a conversation in it makes it again, empty. Throws `conflict` while a turn or a task works
   * in it, and `refused` when unsaved work is in it, unless `force`: files in no git repository, uncommitted changes, unpushed commits.
   */
  remove(idOrName: string, options?: { force?: boolean | undefined }): Promise<{ readonly sandboxId: string }>;
}

/**
 * The size of all sandboxes of an owner together. Those that were never measured count as 0 bytes.
 *
 * @example
 * const { sandboxes, bytes } = await tl.sandboxesDiskUse();
 * console.log(`${sandboxes} sandboxes, ${bytes} bytes`);
 */
export interface SandboxesDiskUse {
  readonly sandboxes: number;
  readonly bytes: number;
}

export interface SandboxPage {
  readonly limit?: number | undefined;
  readonly before?: string | undefined;
}
