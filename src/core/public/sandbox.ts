import type { DiskUse, Sandbox, SandboxUse, SetupResult } from '../sandbox/sandbox.ts';

/**
 * A sandbox as all interfaces show it.
 *
 * @example
 * for (const { name, state, conversations } of await tl.sandboxes()) console.log(name, state, conversations);
 */
export interface PublicSandbox {
  readonly id: string;
  readonly owner: string;
  /** The name under which conversations share it; null: it belongs to one conversation. */
  readonly name: string | null;
  /** `new`: nothing was made yet, or it was removed. `resting`: nothing runs in it, and the next turn reopens it. */
  readonly state: 'new' | 'ready' | 'resting';
  readonly createdAt: number;
  /** The last time that it was opened, or that a turn was accepted or ended in it. */
  readonly usedAt: number;
  /** How many conversations work in it. */
  readonly conversations: number;
  /** Its size on the disk, in bytes, as measured last; null: not measured yet. */
  readonly disk: DiskUse | null;
}

/**
 * A sandbox with what was set up in it and who works in it.
 *
 * @example
 * const { setup, uses } = await tl.sandbox('website').show();
 * console.log(setup.filter(({ code }) => code !== 0), uses.length);
 */
export interface SandboxView {
  readonly sandbox: PublicSandbox;
  /** The last run of each step of the set-up, in order. */
  readonly setup: readonly PublicSetupStep[];
  /** The conversations in it, most recently changed first, at most 100. */
  readonly uses: readonly PublicSandboxUse[];
}

/**
 * Who works where: the chain user, sandbox, conversation, session.
 *
 * @example
 * const { sandboxId, sessionId } = await chat.sandbox();
 * console.log(`in ${sandboxId}, session ${sessionId ?? 'none yet'}`);
 */
export interface PublicSandboxUse {
  readonly owner: string;
  readonly sandboxId: string;
  readonly conversationId: string;
  /** The agent's id of the session that was used last; null: there is none yet. */
  readonly sessionId: string | null;
}

export type PublicSetupStep = Omit<SetupResult, 'digest'>;

export function toPublicSandbox(stored: Sandbox): PublicSandbox {
  const { id, owner, name, createdAt, usedAt, conversations, disk, openedAt, restedAt } = stored;
  const state = openedAt === null ? 'new' : restedAt === null ? 'ready' : 'resting';
  return { id, owner, name, state, createdAt, usedAt, conversations, disk };
}

export function toPublicUse({ owner, sandbox, conversation, session }: SandboxUse): PublicSandboxUse {
  return { owner, sandboxId: sandbox, conversationId: conversation, sessionId: session };
}

export function toPublicSteps(setup: readonly SetupResult[]): PublicSetupStep[] {
  return setup.map(({ digest: _, ...step }) => step);
}
