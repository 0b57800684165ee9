import type { Conversation } from '../../core/conversation.ts';
import type { Agent, AgentSession } from '../../ports/agent.ts';
import type { OpenSandbox } from '../../ports/sandbox.ts';
import type { EngineParts } from '../parts.ts';
import type { Lease } from './lease.ts';

/** A conversation that this process holds: the lease, the open sandbox, and the sessions kept alive in it. */
export class Hold {
  readonly parts: EngineParts;
  readonly lease: Lease;
  /** As of the last turn that ended here; nobody else writes its history while the lease is held. */
  conversation: Conversation;
  /** By agent: at most one living session each. */
  readonly live = new Map<string, LiveSession>();
  #openSandbox: Promise<OpenSandbox> | null = null;

  constructor(parts: EngineParts, lease: Lease, conversation: Conversation) {
    this.parts = parts;
    this.lease = lease;
    this.conversation = conversation;
  }

  openSandbox(): Promise<OpenSandbox> {
    const { sandbox, cwd } = this.conversation;
    this.#openSandbox ??= this.parts.sandboxes.open(sandbox, { cwd });
    this.#openSandbox.catch(() => {
      this.#openSandbox = null;
    });
    return this.#openSandbox;
  }

  /** Where the agent's sessions of this conversation live. */
  async storage(agent: Agent): Promise<string> {
    return agent.storage === undefined ? agent.name : agent.storage(await this.openSandbox());
  }

  /** The living session of an agent; null: there is none, or its process has ended. */
  living(agent: string): LiveSession | null {
    const live = this.live.get(agent);
    return live?.session.alive ? live : null;
  }

  /** Ends an agent's process and says so in the lineage. The session itself stays, in the agent's storage if it has one. */
  async letGo(agent: Agent): Promise<void> {
    const live = this.live.get(agent.name);
    if (live === undefined) return;
    this.live.delete(agent.name);
    await live.session.close();
    const keeps = await reopens(agent);
    const state = live.unsettled && keeps ? 'unsettled' : keeps ? 'dormant' : 'lost';
    await this.lease.write({
      write: 'change-session',
      ref: live.ref,
      change: { state, process: null },
      reason: keeps ? 'its process was let go' : 'its process was let go, and the agent keeps nothing without it',
    });
  }

  /** Ends every process without writing a word: the lease is gone, or the storage is. */
  async abandon(): Promise<void> {
    const sessions = [...this.live.values()].map((live) => live.session.kill());
    this.live.clear();
    await Promise.all(sessions);
  }
}

export interface LiveSession {
  /** Our reference of it in the lineage. */
  readonly ref: string;
  readonly session: AgentSession;
  readonly unsettled: boolean;
  /** Nothing has shown what it knew when it was opened. */
  readonly unproved: boolean;
}

/** Whether the agent can open a session again after its process has ended. */
export async function reopens(agent: Agent): Promise<boolean> {
  const traits = await agent.traits();
  return traits.resume || traits.load;
}
