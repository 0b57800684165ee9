import { randomUUID } from 'node:crypto';
import { ThroughlineError } from '../../core/errors.ts';
import type { Turn } from '../../core/turn/turn.ts';
import { conversationLeases, freeDead, LeaseKeeper } from '../../leases/lease-keeper.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Processes } from '../../ports/processes.ts';
import type { Sandboxes } from '../../ports/sandbox.ts';
import type { Claim, Fence } from '../../ports/store/leases.ts';
import type { Write } from '../../ports/store/writes.ts';
import type { Store } from '../../ports/store.ts';

/** The parts of a tracker. */
export interface TrackerParts {
  readonly store: Store;
  readonly processes: Processes;
  readonly clock: Clock;
  readonly sandboxes: Sandboxes;
  readonly settings: { readonly leaseMs: number };
  /** Called for bugs of this program. */
  readonly onBug: (error: unknown, where: string) => void;
}

/** A lock that we hold: the right to write, and the number of the next write. */
export interface Held {
  readonly fence: Fence;
  counter: number;
}

/**
 * The locks of one tracker. The lock of a conversation is its lease: renewed while this process lives, free at once when it is
 * dead, and free when it expires if the process hangs.
 */
export class TrackerLocks {
  readonly #parts: TrackerParts;
  readonly #agent: string;
  readonly #worker = randomUUID();
  /** By conversation. */
  readonly #held = new Map<string, Held>();
  readonly #keeper: LeaseKeeper<Fence>;

  constructor(parts: TrackerParts, agent: string) {
    this.#parts = parts;
    this.#agent = agent;
    this.#keeper = new LeaseKeeper(
      conversationLeases(parts.store),
      {
        held: () => [...this.#held.values()].map(({ fence }) => fence),
        lost: (fence) => this.#forget(fence),
        onFault: (error, where) => error instanceof ThroughlineError || parts.onBug(error, where),
      },
      parts,
    );
  }

  /** The lock that we have; null: we have none. */
  held(conversation: string): Held | null {
    return this.#held.get(conversation) ?? null;
  }

  /** Takes a free lock. `left`: the request that the last holder left open. Null: another process has it. */
  async take(conversation: string): Promise<{ held: Held; left: Turn | null } | null> {
    const { store, processes } = this.#parts;
    let claim = await this.#claim(conversation);
    // Without the keeper's limit of ten looks a second: a dead holder's lock must be free at once.
    if (claim === null && (await freeDead(conversationLeases(store), processes)))
      claim = await this.#claim(conversation);
    if (claim === null) return null;
    const held: Held = { fence: claim.fence, counter: 1 };
    this.#held.set(conversation, held);
    return { held, left: claim.unfinished ?? claim.turn };
  }

  /** Begins the oldest queued request; null: there is none. */
  begin(held: Held): Promise<Turn | null> {
    return this.#parts.store.begin(held.fence, [this.#agent]);
  }

  async commit(held: Held, writes: readonly Write[]): Promise<void> {
    const { counter } = held;
    held.counter += writes.length;
    try {
      await this.#parts.store.commit(held.fence, counter, writes);
    } catch (error) {
      if (error instanceof ThroughlineError && error.code === 'lease_lost') this.#forget(held.fence);
      throw error;
    }
  }

  async release(held: Held): Promise<void> {
    this.#forget(held.fence);
    await this.#parts.store.release(held.fence);
  }

  async close(): Promise<void> {
    this.#keeper.stop();
    await Promise.all([...this.#held.values()].map((held) => this.release(held)));
  }

  #claim(conversation: string): Promise<Claim | null> {
    const { store, sandboxes, settings, processes } = this.#parts;
    this.#keeper.start();
    return store.claim({
      worker: { id: this.#worker, process: processes.self() },
      place: sandboxes.place,
      agents: [this.#agent],
      driver: 'tracker',
      leaseMs: settings.leaseMs,
      conversation,
    });
  }

  /** A lock that was lost may be ours again by now, under another epoch. */
  #forget({ conversation, epoch }: Fence): void {
    if (this.#held.get(conversation)?.fence.epoch === epoch) this.#held.delete(conversation);
  }
}
