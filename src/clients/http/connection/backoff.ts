import { type ServerAway, unreachable } from './faults.ts';

/** How long a client waits for a server that does not answer, and how often it tries meanwhile. */
export interface BackoffSettings {
  /** Counted from the last answer. */
  readonly giveUpMs: number;
  /** The first pause; each is up to twice the one before. */
  readonly firstMs: number;
  readonly longestMs: number;
}

export type Backoff = ReturnType<typeof createBackoff>;

/** The pauses between tries to reach the server. They grow until it answers. */
export function createBackoff(where: string, { giveUpMs, firstMs, longestMs }: BackoffSettings) {
  let longest = longestMs;
  let awaySince: number | null = null;
  let pauses = 0;
  return {
    /** The server asks for this pause; it becomes the longest one. */
    limit(ms: number): void {
      longest = ms;
    },
    /** The server answers. */
    answered(): void {
      awaySince = null;
    },
    /** The server sends what was asked for: the next pause is a short one. */
    reset(): void {
      awaySince = null;
      pauses = 0;
    },
    /** How long the server is still waited for. */
    leftMs(): number {
      return awaySince === null ? giveUpMs : Math.max(0, giveUpMs - (performance.now() - awaySince));
    },
    /** How long to wait before the next try. Throws `unreachable` when the server has been away for too long. */
    next(why: ServerAway): number {
      const now = performance.now();
      awaySince ??= now - why.silentMs;
      if (now - awaySince >= giveUpMs) throw unreachable(where, why);
      const most = Math.min(longest, firstMs * 2 ** pauses);
      pauses = Math.min(pauses + 1, 20);
      // Random, so that many clients do not reconnect at the same moment.
      return most * (0.5 + Math.random() / 2);
    },
  };
}
