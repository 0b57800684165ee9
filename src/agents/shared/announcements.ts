import { join } from 'node:path';
import { isObject } from '../../core/turn/content.ts';
import type { Update } from '../../core/turn/update.ts';
import type { Announcements } from '../../ports/agent.ts';
import { readLearntFile, writeLearntFile } from './learnt-file.ts';

const KINDS: readonly string[] = ['config_option_update', 'current_mode_update'];
/** A longer list of models is of no use to a person. */
const MOST_CHARACTERS = 256 * 1024;

/** What an agent last announced, in a file of the data home that all agents share. */
export class KeptAnnouncements implements Announcements {
  readonly #file: string;
  readonly #agent: string;
  /** As JSON, by kind: what this process has seen. */
  readonly #seen = new Map<string, string>();

  /** `folder`: one of our own. `agent`: its name in the settings. */
  constructor(folder: string, agent: string) {
    this.#file = join(folder, 'announced.json');
    this.#agent = agent;
  }

  see(update: Update): void {
    const { sessionUpdate: kind } = update;
    if (!KINDS.includes(kind)) return;
    const text = JSON.stringify(update);
    if (text.length > MOST_CHARACTERS || this.#seen.get(kind) === text) return;
    this.#seen.set(kind, text);
    writeLearntFile(this.#file, { ...readLearntFile(this.#file), [this.#agent]: { ...this.#read(), [kind]: update } });
  }

  last(): Update[] {
    return KINDS.flatMap((kind) => {
      const kept = this.#read()[kind];
      return isObject(kept) && kept.sessionUpdate === kind ? [kept as unknown as Update] : [];
    });
  }

  #read(): Readonly<Record<string, unknown>> {
    const all = readLearntFile(this.#file) ?? {};
    const own = Object.hasOwn(all, this.#agent) ? all[this.#agent] : null;
    return isObject(own) ? own : {};
  }
}
