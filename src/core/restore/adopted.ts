import { DEEPEST, isTooDeep } from '../input/too-deep.ts';
import { wellFormed } from '../input/well-formed.ts';
import { type ContentBlock, isObject, type Prompt, parseSaid } from '../turn/content.ts';
import { PartsBuilder, type TurnRecord } from '../turn/record.ts';
import type { Update } from '../turn/update.ts';

/*
 * The history of an agent's session that a conversation adopts. It is read from the agent's own storage, or the agent repeats it. It
 * becomes turns of the conversation, so that every later session can be given them.
 */

/** A turn that ran before the session was adopted. */
export type NativeTurn = Pick<TurnRecord, 'prompt' | 'parts' | 'outcome' | 'failure' | 'startedAt' | 'endedAt'>;

export interface SessionHistory {
  /** Oldest first. */
  readonly turns: readonly NativeTurn[];
  /** There were turns before the first of them that cannot be read: they are too long, or only a summary is left. */
  readonly unknownBefore: boolean;
  /** How many of the oldest turns the session itself has only as a summary. */
  readonly condensed: number;
  /** The position of the session when it was read; null: not readable. */
  readonly position: string | null;
}

/** A part of a conversation that could not be read: what was said before turn `n`, in that session of the agent. */
export interface UnknownPart {
  readonly n: number;
  readonly agent: string;
  readonly sessionId: string | null;
}

/** The last turn before which a session lacks an unreadable part; null: none. `sessions`: its id and those of its ancestors. */
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
  /** Something of it is nested too deep. */
  cut: boolean;
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
    this.#open = {
      prompt: validPrompt(blocks),
      parts,
      startedAt: at,
      endedAt: at,
      answered: false,
      stopped: false,
      cut: false,
    };
  }

  /** What the agent did. Ignored before the first prompt. */
  update(update: Update, at: number): void {
    const open = this.#open;
    if (open === null) return;
    // Nothing after it is read either, as of a turn that runs here.
    open.cut ||= isTooDeep(update);
    if (open.cut) return;
    open.parts.add(update);
    open.endedAt = Math.max(open.endedAt, at);
    if (update.sessionUpdate === 'agent_message_chunk') open.answered = true;
  }

  /** Somebody stopped the turn, or it failed. */
  stopped(): void {
    if (this.#open !== null) this.#open.stopped = true;
  }

  /**
   * The agent replaced everything before by its own summary. If no turn was added before, what was summarised cannot be read. The
   * current turn continues; if the agent had begun to answer, the summary includes that turn.
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
    const { prompt, startedAt, endedAt, answered, stopped, cut } = open;
    const parts = open.parts.parts();
    const whole = answered && !stopped ? COMPLETED : INTERRUPTED;
    const ended = cut ? CUT : whole;
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
  failure: { code: 'interrupted', message: 'The turn was not finished in the session that was adopted.' },
} as const;

const CUT = {
  outcome: 'interrupted',
  failure: {
    code: 'interrupted',
    message: `The rest of the turn was not read: something in it is nested deeper than ${DEEPEST} levels.`,
  },
} as const;

/** A prompt with only the blocks that our prompts can have. Any other block becomes its type in brackets. */
function validPrompt(blocks: readonly unknown[]): Prompt {
  const shallow = blocks.map((block) => (isTooDeep(block) && isObject(block) ? { type: block.type } : block));
  const valid = wellFormed(shallow).flatMap((block): ContentBlock[] => {
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
