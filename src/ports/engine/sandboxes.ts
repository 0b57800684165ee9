import type { PublicSandbox, SandboxView } from '../../core/public/sandbox.ts';
import type { SandboxUse } from '../../core/sandbox/sandbox.ts';

/** The sandboxes of an owner: user, sandbox, conversation, session. Another owner's are `not_found`. */
export interface EngineSandboxes {
  /** Newest first, a page of 100 or of `limit`; `before` is the id of the last one of the previous page. */
  list(page?: SandboxPage): Promise<PublicSandbox[]>;
  /** By its id or its name. Throws `not_found`. */
  show(idOrName: string): Promise<SandboxView>;
  /** Where a conversation works, and which session it used last. */
  of(conversation: string): Promise<SandboxUse>;
}

export interface SandboxPage {
  readonly limit?: number;
  readonly before?: string;
}
