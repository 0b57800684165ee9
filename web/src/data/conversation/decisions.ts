import type { ConversationEvent, Engine, Permission } from 'throughline/client';
import { createStore, type StoreApi } from 'zustand/vanilla';
import { PAGE, pageOf } from './reads.ts';

/** By turn id, in the order in which they were asked. */
type ByTurn = ReadonlyMap<string, readonly Permission[]>;

/** How many questions are read at once. */
const MOST = 200;

/**
 * The questions of a conversation that have ended: answered, denied or withdrawn. Those of a page of turns are read when one of its turns
 * is shown, those that end later with their event.
 */
export class Decisions {
  readonly state: StoreApi<ByTurn> = createStore<ByTurn>(() => new Map());
  readonly #engine: Engine;
  readonly #conversation: string;
  readonly #read = new Set<number>();

  constructor(engine: Engine, conversation: string) {
    this.#engine = engine;
    this.#conversation = conversation;
  }

  /** Reads those of the page of a turn, once. Without them the turn is shown as well. */
  load(n: number): void {
    const page = pageOf(n);
    if (this.#read.has(page)) return;
    this.#read.add(page);
    this.#readPage(page).catch(() => this.#read.delete(page));
  }

  async #readPage(page: number): Promise<void> {
    const turns = { fromTurn: page * PAGE + 1, toTurn: (page + 1) * PAGE };
    let last: Permission | undefined;
    do {
      const after = last === undefined ? {} : { after: last.id };
      const filter = { conversation: this.#conversation, open: false, ...turns, limit: MOST, ...after };
      const found: Permission[] = await this.#engine.permissions(filter);
      this.put(found);
      last = found.at(-1);
    } while (last !== undefined);
  }

  /** Reads the questions that have ended with these events. */
  onEvents(events: readonly ConversationEvent[]): void {
    for (const event of events) {
      if (
        event.kind !== 'permission.answered' &&
        event.kind !== 'permission.denied' &&
        event.kind !== 'permission.withdrawn'
      )
        continue;
      this.#engine.permission(event.payload.permissionId).then(
        (permission) => this.put([permission]),
        () => {}, // erased, or the server is away: a reload shows it
      );
    }
  }

  put(ended: readonly Permission[]): void {
    if (ended.length === 0) return;
    const all = new Map(this.state.getState());
    for (const permission of ended) {
      const others = (all.get(permission.turnId) ?? []).filter(({ id }) => id !== permission.id);
      all.set(
        permission.turnId,
        [...others, permission].sort((a, b) => a.askedAt - b.askedAt),
      );
    }
    this.state.setState(all, true);
  }
}
