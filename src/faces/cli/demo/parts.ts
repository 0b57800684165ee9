import type { Agent } from '../../../ports/agent.ts';
import type { Engine } from '../../../ports/engine.ts';
import type { OpenSandbox } from '../../../ports/sandbox.ts';

export const DEMO_AGENTS = ['scripted', 'claude'] as const;

export interface DemoRequest {
  readonly agent: (typeof DEMO_AGENTS)[number];
  /** With the person's own model, which may cost money, and not with one that stands in for it. */
  readonly live: boolean;
  /** Temporary: everything that the demo keeps is in here. */
  readonly home: string;
  /** Where agents were installed; left out: in the usual data home. */
  readonly installedIn: string | undefined;
  /** The person's settings file; left out: where it usually is. */
  readonly config: string | undefined;
}

/** What the demo works with: an engine, and the very agent that it uses, to be used without it for comparison. */
export interface DemoParts {
  readonly engine: Engine;
  readonly agent: Agent;
  /** What is real here and what is not, as sentences for people. */
  readonly about: string;
  /** Where the conversation works, and the one without Throughline, too. Null: a directory of its own. */
  readonly cwd: string | null;
  readonly sandbox: OpenSandbox;
  /** Where the agent keeps its sessions: files whose names begin with the session's id. */
  readonly sessionFiles: string;
  /** Ends what was started beside the engine. */
  close(): Promise<void>;
}
