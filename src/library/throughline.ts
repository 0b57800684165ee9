import { ThroughlineError } from '../core/errors.ts';
import type { Engine } from '../ports/engine.ts';
import type { Tasks } from '../ports/tasks.ts';
import type { OnPermission } from './answering.ts';
import { ThroughlineClient } from './client.ts';
import type { TrackerParts } from './tracker/locks.ts';
import { ConversationTracker } from './tracker/tracker.ts';

/** Throughline as a library, for one owner. */
export class Throughline extends ThroughlineClient {
  readonly #parts: TrackerParts | null;
  readonly #trackers: ConversationTracker[];

  /** `parts` null: engine and tasks are those of a server. */
  constructor(
    engine: Engine,
    tasks: Tasks,
    parts: TrackerParts | null,
    onPermission?: OnPermission,
    trackers: ConversationTracker[] = [],
  ) {
    super(engine, tasks, onPermission);
    this.#parts = parts;
    this.#trackers = trackers;
  }

  override as(owner: string): Throughline {
    return new Throughline(this.engine.as(owner), this.tasks.as(owner), this.#parts, this.onPermission, this.#trackers);
  }

  /** For programs that drive an agent themselves: the same store and rules, without an adapter. */
  tracker(): ConversationTracker {
    if (this.#parts === null) {
      throw new ThroughlineError('refused', 'A tracker needs direct access to the store, not a server.', {
        hint: 'Open Throughline without "server", on the machine that has the data home.',
      });
    }
    const tracker = new ConversationTracker(this.#parts, this.engine.owner);
    this.#trackers.push(tracker);
    return tracker;
  }

  override async close(options: { graceMs?: number } = {}): Promise<void> {
    await Promise.all(this.#trackers.map((tracker) => tracker.close()));
    await super.close(options);
  }
}
