/** What an agent can do. Probed by its adapter, never assumed. */
export interface AgentTraits {
  readonly version: string;
  /** Whether the agent issues its session ids or takes one that we assign when opening. */
  readonly id: 'issued' | 'assigned';
  /** Reopens a session of its own storage without repeating the history. */
  readonly resume: boolean;
  /** Reopens one and repeats the history, which we then compare. */
  readonly load: boolean;
  /** Lists its own sessions, as `throughline sessions --agent` shows them. */
  readonly list: boolean;
  /** Reads a transcript file that we can write. */
  readonly rehydrate: boolean;
  /** Has a profile in which no tool can run, proved on this very version. */
  readonly noTools: boolean;
  /** Its storage can be read back: the position of a session is known. */
  readonly position: boolean;
  /** Reopens a session as it was before a failed prompt, which is then not part of its context. */
  readonly rewind: boolean;
  /** Takes images in a prompt. */
  readonly images: boolean;
  /** The model's window in tokens. */
  readonly window: number;
  readonly windowFrom: WindowFrom;
}

/**
 * Where the size of a window is from. `setting`: the settings name it. `reported`: the agent has reported it. `assumed`: neither; later it
 * may turn out to be another.
 */
export const WINDOW_FROM = ['setting', 'reported', 'assumed'] as const;
export type WindowFrom = (typeof WINDOW_FROM)[number];

/** Whether the agent can open a session again after its process has ended. */
export function canReopen({ resume, load }: Pick<AgentTraits, 'resume' | 'load'>): boolean {
  return resume || load;
}
