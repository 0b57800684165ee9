import type { Clock } from '../ports/clock.ts';
import type { ConversationSpec, Engine } from '../ports/engine.ts';
import type { Processes } from '../ports/processes.ts';
import type { Sandboxes } from '../ports/sandbox.ts';
import type { Store } from '../ports/store.ts';
import type { Tasks } from '../ports/tasks.ts';
import { ConversationHandle } from './conversation.ts';
import { ConversationTracker } from './tracker.ts';

/** What the library needs beside the engine, for those who drive an agent themselves. */
export interface TrackerParts {
  readonly store: Store;
  readonly processes: Processes;
  readonly clock: Clock;
  readonly sandboxes: Sandboxes;
  readonly settings: { readonly leaseMs: number };
  /** Clears up after processes that are provably dead: their locks are free then. True: there were some. */
  reap(): Promise<boolean>;
}

/** Throughline as a library, on behalf of one owner. */
export class Throughline {
  readonly engine: Engine;
  /** Agents at work, unattended: goals gone over in turns until their gates pass. */
  readonly tasks: Tasks;
  readonly #parts: TrackerParts;
  readonly #trackers: ConversationTracker[];

  constructor(engine: Engine, parts: TrackerParts, tasks: Tasks, trackers: ConversationTracker[] = []) {
    this.engine = engine;
    this.tasks = tasks;
    this.#parts = parts;
    this.#trackers = trackers;
  }

  /** The same for another owner; for applications with their own login. Closing either closes both. */
  as(owner: string): Throughline {
    return new Throughline(this.engine.as(owner), this.#parts, this.tasks.as(owner), this.#trackers);
  }

  /** A conversation by the caller's own name for it; made when it is first used. */
  conversation(key: string, options: Omit<ConversationSpec, 'key'> = {}): ConversationHandle {
    return new ConversationHandle(this.engine, { ...options, key });
  }

  /** For those who drive an agent themselves: the same store, the same rules, no adapter. */
  tracker(): ConversationTracker {
    const tracker = new ConversationTracker(this.#parts, this.engine.owner);
    this.#trackers.push(tracker);
    return tracker;
  }

  async close(options: { graceMs?: number } = {}): Promise<void> {
    await Promise.all([this.tasks.close(), ...this.#trackers.map((tracker) => tracker.close())]);
    await this.engine.close(options);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
