import { wellFormed } from '../input/well-formed.ts';
import { type ContentBlock, isObject, type Prompt, parseSaid } from '../turn/content.ts';
import { PartsBuilder, type TurnRecord } from '../turn/record.ts';
import type { Update } from '../turn/update.ts';

/*
 * The history of a native session that a conversation adopts. The agent's own storage tells it, or the agent repeats it. It becomes
 * turns of the conversation, so that every later session can be told of them.
 */

/** A turn that ran before we knew the session. */
export type NativeTurn = Pick<TurnRecord, 'prompt' | 'parts' | 'outcome' | 'failure' | 'startedAt' | 'endedAt'>;

export interface SessionHistory {
  /** Oldest first. */
  readonly turns: readonly NativeTurn[];
  /** More was said before the first of them, and cannot be read: it is too long, or only a summary of it is left. */
  readonly unknownBefore: boolean;
  /** How many of the oldest turns the session itself has only as a summary. */
  readonly condensed: number;
  /** Where the session's storage stood when it was read; null: that is not readable. */
  readonly position: string | null;
}

/** A part of a conversation that nobody could read: it was said before turn `n`, in that session of the agent. */
export interface UnknownPart {
  readonly n: number;
  readonly agent: string;
  readonly sessionId: string | null;
}

/** The last turn before which a session lacks something that nobody could read; null: none. `sessions`: its id and those it went on from. */
export function unknownBefore(
  parts: readonly UnknownPart[],
  agent: string,
  sessions: readonly string[],
): number | null {
  const has = (part: UnknownPart) =>
    part.agent === agent && part.sessionId !== null && sessions.includes(part.sessionId);
  return parts.findLast((part) => !has(part))?.n ?? null;
}

/** Older turns than these are left out: all of them have to fit into memory and into one transaction. */
const MOST_TURNS = 20_000;
const MOST_LENGTH = 64 * 1024 * 1024;

interface OpenTurn {
  readonly prompt: Prompt;
  readonly parts: PartsBuilder;
  readonly startedAt: number;
  endedAt: number;
  answered: boolean;
  stopped: boolean;
}

/** Gathers the turns of a session, in order, and keeps the newest that fit. */
export class HistoryBuilder {
  readonly #turns: { readonly turn: NativeTurn; readonly length: number }[] = [];
  #length = 0;
  #unknownBefore = false;
  #condensed = 0;
  #open: OpenTurn | null = null;

  prompt(blocks: readonly unknown[], at: number): void {
    this.#close();
    const parts = new PartsBuilder();
    this.#open = { prompt: validPrompt(blocks), parts, startedAt: at, endedAt: at, answered: false, stopped: false };
  }

  /** What the agent did. Before the first prompt it belongs to no turn. */
  update(update: Update, at: number): void {
    const open = this.#open;
    if (open === null) return;
    open.parts.add(update);
    open.endedAt = Math.max(open.endedAt, at);
    if (update.sessionUpdate === 'agent_message_chunk') open.answered = true;
  }

  /** Somebody stopped the turn, or it failed. */
  stopped(): void {
    if (this.#open !== null) this.#open.stopped = true;
  }

  /**
   * The agent replaced what was said before by its own summary. If nothing of it was told here, it cannot be read any more. The turn
   * in which that happens goes on; if it had begun to answer, the summary is of that, too.
   */
  condensed(): void {
    const begun = this.#open !== null && this.#open.parts.parts().length > 0;
    this.#condensed = this.#turns.length + (begun ? 1 : 0);
    if (this.#condensed === 0) this.#unknownBefore = true;
  }

  history(position: string | null): SessionHistory {
    this.#close();
    const turns = this.#turns.map(({ turn }) => turn);
    return { turns, unknownBefore: this.#unknownBefore, condensed: this.#condensed, position };
  }

  #close(): void {
    const open = this.#open;
    this.#open = null;
    if (open === null) return;
    const { prompt, startedAt, endedAt, answered, stopped } = open;
    const parts = open.parts.parts();
    const ended = answered && !stopped ? COMPLETED : INTERRUPTED;
    const turn: NativeTurn = wellFormed({ prompt, parts, ...ended, startedAt, endedAt });
    const length = JSON.stringify(turn).length;
    this.#turns.push({ turn, length });
    this.#length += length;
    while (this.#turns.length > MOST_TURNS || (this.#length > MOST_LENGTH && this.#turns.length > 1)) {
      this.#length -= this.#turns.shift()?.length ?? 0;
      this.#condensed = Math.max(0, this.#condensed - 1);
      this.#unknownBefore = true;
    }
  }
}

const COMPLETED = { outcome: 'completed', failure: null } as const;
const INTERRUPTED = {
  outcome: 'interrupted',
  failure: { code: 'interrupted', message: 'It was not finished in the session that it comes from.' },
} as const;

/** A prompt as every interface takes it. Agents keep blocks that no prompt of ours can have: their kind is noted. */
function validPrompt(blocks: readonly unknown[]): Prompt {
  const valid = wellFormed(blocks).flatMap((block): ContentBlock[] => {
    try {
      return [...parseSaid([block])];
    } catch {
      return isObject(block) && typeof block.type === 'string' && block.type !== 'text'
        ? [{ type: 'text', text: `[${block.type}]` }]
        : [];
    }
  });
  return valid.length > 0 ? valid : [{ type: 'text', text: '[a prompt without text]' }];
}
