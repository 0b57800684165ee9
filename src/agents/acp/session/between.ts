import type { Update } from '../../../core/update.ts';

/** Kinds of updates that say what happened in a turn: outside of one they would be taken for the next one's. */
const OF_A_TURN: readonly string[] = [
  'user_message_chunk',
  'agent_message_chunk',
  'agent_thought_chunk',
  'tool_call',
  'tool_call_update',
  'plan',
];

const MOST = 500;
const MOST_LENGTH = 4 * 1024 * 1024;

export function isOfATurn({ sessionUpdate }: Update): boolean {
  return OF_A_TURN.includes(sessionUpdate);
}

/** An update that cannot pass for one of the turn in which it is told. */
export function apart(update: Update): Update {
  return { sessionUpdate: '_acp/between_turns', update } as Update;
}

/**
 * What an agent says while no prompt is in flight. It belongs to no turn, and is not to be lost either: the next one has it. Of
 * an agent that says more than there is room for, the newest is kept, and how much went before it.
 */
export class BetweenTurns {
  #kept: { readonly update: Update; readonly length: number }[] = [];
  #length = 0;
  #dropped = 0;

  keep(update: Update, length: number): void {
    this.#kept.push({ update: isOfATurn(update) ? apart(update) : update, length });
    this.#length += length;
    while (this.#kept.length > MOST || this.#length > MOST_LENGTH) {
      this.#length -= this.#kept.shift()?.length ?? 0;
      this.#dropped += 1;
    }
  }

  /** All of it, oldest first; afterwards there is none. */
  take(): Update[] {
    const kept = this.#kept.map(({ update }) => update);
    const dropped = this.#dropped;
    [this.#kept, this.#length, this.#dropped] = [[], 0, 0];
    return dropped === 0 ? kept : [{ sessionUpdate: '_acp/dropped', updates: dropped } as Update, ...kept];
  }
}
