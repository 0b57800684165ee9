import type { Agent } from '../../../ports/agent.ts';
import type { Engine } from '../../../ports/engine.ts';
import type { Room } from '../../../ports/sandbox.ts';

/** What the demo works with: an engine, and the very agent that it uses, to be used without it for comparison. */
export interface DemoParts {
  readonly engine: Engine;
  readonly agent: Agent;
  readonly room: Room;
  /** Where the agent keeps its sessions: one file each. */
  readonly sessionFiles: string;
}
