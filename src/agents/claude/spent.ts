import { SPENT, type Update } from '../../core/update.ts';
import { addUsage, NO_USAGE, type Usage } from '../../core/usage.ts';
import { tokensOf } from './result.ts';

/**
 * The tokens of a turn while it goes on, from what is said of every call of the model, in pieces: what goes in at its
 * beginning, what came out at its end. The result of the turn says what counts.
 */
export class Spent {
  readonly #calls = new Map<string, Partial<Usage>>();
  #isNew = false;

  /** What was said of a call; of each number the largest counts. */
  note(call: string, usage: unknown): void {
    const before = this.#calls.get(call) ?? {};
    const said = Object.entries(tokensOf({ type: 'usage', usage })) as [keyof Usage, number][];
    const more = said.filter(([kind, count]) => count > (before[kind] ?? 0));
    if (more.length === 0) return;
    this.#calls.set(call, { ...before, ...Object.fromEntries(more) });
    this.#isNew = true;
  }

  /** What all calls have used by now; nothing, when that was said before. */
  updates(): Update[] {
    if (!this.#isNew) return [];
    this.#isNew = false;
    const { costMicros: _, modelCalls: __, ...tokens } = this.#calls.values().reduce(addUsage, NO_USAGE);
    return [{ sessionUpdate: SPENT, ...tokens }];
  }
}
