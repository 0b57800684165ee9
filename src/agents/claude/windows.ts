import { join } from 'node:path';
import { isObject } from '../../core/turn/content.ts';
import { readLearntFile, writeLearntFile } from '../shared/learnt-file.ts';

/**
 * The windows of models as Claude has reported them, by the agent that uses the model and the name by which it was started. Claude reports
 * the window only with the result of a turn, and a history is fitted before that. So it is kept in the data home, for the next process.
 */
export class LearntWindows {
  readonly #file: string;
  readonly #agent: string;
  #windows: Readonly<Record<string, unknown>> | null = null;

  /** `folder`: one of our own. */
  constructor(folder: string, agent: string) {
    this.#file = join(folder, 'claude-windows.json');
    this.#agent = agent;
  }

  /** Null: nothing was reported of this model. `model` null: the one that Claude chooses. */
  of(model: string | null): number | null {
    this.#windows ??= this.#read();
    const name = nameOf(model);
    const tokens = Object.hasOwn(this.#windows, name) ? this.#windows[name] : null;
    return typeof tokens === 'number' && tokens > 0 ? tokens : null;
  }

  learn(model: string | null, tokens: number): void {
    if (this.of(model) === tokens) return;
    // Another process may have learnt something meanwhile.
    this.#windows = { ...this.#read(), [nameOf(model)]: tokens };
    writeLearntFile(this.#file, { ...readLearntFile(this.#file), [this.#agent]: this.#windows });
  }

  #read(): Readonly<Record<string, unknown>> {
    const all = readLearntFile(this.#file) ?? {};
    const own = Object.hasOwn(all, this.#agent) ? all[this.#agent] : null;
    return { ...this.#windows, ...(isObject(own) ? own : {}) };
  }
}

function nameOf(model: string | null): string {
  return model ?? 'default';
}
