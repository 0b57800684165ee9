import type { Agent } from './agent.ts';
import type { Engine } from './engine.ts';
import type { OpenSandbox } from './sandbox.ts';

export interface DemoRequest {
  readonly agent: 'scripted' | 'claude';
  /** Use the person's own model, which may cost money, instead of the stand-in. */
  readonly live: boolean;
  /** A temporary directory; everything that the demo keeps is in here. */
  readonly home: string;
  /** The data home that agents were installed in; left out: the usual one. */
  readonly installedIn: string | undefined;
  /** The person's settings file; left out: the usual one. */
  readonly config: string | undefined;
}

/** What the demo works with: an engine, and the agent that it uses, to be used without it for comparison. */
export interface DemoParts {
  readonly engine: Engine;
  readonly agent: Agent;
  /** What is real here and what is not, as sentences for people. */
  readonly about: string;
  /** Where the agent works, with Throughline and without. Null: in a directory of its own. */
  readonly cwd: string | null;
  readonly sandbox: OpenSandbox;
  /** Where the agent keeps its sessions: files whose names begin with the session's id. */
  readonly sessionFiles: string;
  /** The process that holds a session of the agent; null: none does. */
  pidOf(sessionId: string): Promise<number | null>;
  /** Ends what was started beside the engine. */
  close(): Promise<void>;
}
