import { randomInt, randomUUID } from 'node:crypto';
import { hasCode, ThroughlineError } from '../../core/errors.ts';
import { clientProcess } from '../../core/process.ts';
import { begun, type Turn } from '../../core/turn/turn.ts';
import { conversationLeases, freeDead, LeaseKeeper } from '../../leases/lease-keeper.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Processes } from '../../ports/processes.ts';
import type { Sandboxes } from '../../ports/sandbox.ts';
import type { Claim, Fence, WorkerInfo } from '../../ports/store/leases.ts';
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
export interface HeldLock {
  readonly fence: Fence;
  counter: number;
}

/** The locks of one program. The lock of a conversation is its lease. */
export abstract class TrackerLocks {
  protected readonly parts: TrackerParts;
  readonly #agent: string;
  readonly #worker: WorkerInfo;

  constructor(parts: TrackerParts, agent: string, worker: WorkerInfo) {
    this.parts = parts;
    this.#agent = agent;
    this.#worker = worker;
  }

  /** The lock that the program has; null: it has none. */
  abstract held(conversation: string): Promise<HeldLock | null>;

  /** A lock that was just taken. */
  protected abstract took(fence: Fence): HeldLock;

  /** The lock was released, or lost. */
  protected forget(_fence: Fence): void {}

  /** Takes a free lock. `left`: the request that the last holder left open. Null: another program has it. */
  async take(conversation: string): Promise<{ held: HeldLock; left: Turn | null } | null> {
    let claim = await this.#claim(conversation);
    // Not by the keeper, which looks at most ten times a second: the lock of a dead holder must be free at once.
    if (claim === null && (await freeDead(conversationLeases(this.parts.store), this.parts)))
      claim = await this.#claim(conversation);
    if (claim === null) return null;
    return { held: this.took(claim.fence), left: claim.unfinished ?? claim.turn };
  }

  /** Begins the oldest queued request; null: there is none. */
  async begin(held: HeldLock): Promise<Turn | null> {
    for (;;) {
      const turn = (await this.parts.store.nextTurn(held.fence, [this.#agent]))?.turn ?? null;
      if (turn?.state !== 'queued') return turn;
      try {
        await this.commit(held, [{ write: 'begin', turn: turn.id }]);
        return begun(turn, this.parts.clock.now());
      } catch (error) {
        // It was cancelled meanwhile.
        if (!hasCode(error, 'conflict')) throw error;
      }
    }
  }

  async commit(held: HeldLock, writes: readonly Write[]): Promise<void> {
    const { counter } = held;
    held.counter += writes.length;
    try {
      await this.parts.store.commit(held.fence, counter, writes);
    } catch (error) {
      if (hasCode(error, 'lease_lost')) this.forget(held.fence);
      throw error;
    }
  }

  async release(held: HeldLock): Promise<void> {
    this.forget(held.fence);
    await this.parts.store.release(held.fence);
  }

  async close(): Promise<void> {}

  #claim(conversation: string): Promise<Claim | null> {
    const { store, sandboxes, settings } = this.parts;
    return store.claim({
      worker: this.#worker,
      place: sandboxes.place,
      agents: [this.#agent],
      driver: 'tracker',
      leaseMs: settings.leaseMs,
      conversation,
    });
  }
}

/** The locks of this process: renewed while it lives, free at once when it is dead, and free when they expire if it hangs. */
export class ProcessLocks extends TrackerLocks {
  /** By conversation. */
  readonly #held = new Map<string, HeldLock>();
  readonly #keeper: LeaseKeeper<Fence>;

  constructor(parts: TrackerParts, agent: string) {
    super(parts, agent, { id: randomUUID(), process: parts.processes.self() });
    this.#keeper = new LeaseKeeper(
      conversationLeases(parts.store),
      {
        held: () => [...this.#held.values()].map(({ fence }) => fence),
        lost: (fence) => this.forget(fence),
        onFault: (error, where) => error instanceof ThroughlineError || parts.onBug(error, where),
      },
      parts,
    );
  }

  async held(conversation: string): Promise<HeldLock | null> {
    return this.#held.get(conversation) ?? null;
  }

  protected took(fence: Fence): HeldLock {
    this.#keeper.start();
    const held: HeldLock = { fence, counter: 1 };
    this.#held.set(fence.conversation, held);
    return held;
  }

  override async close(): Promise<void> {
    this.#keeper.stop();
    await Promise.all([...this.#held.values()].map((held) => this.release(held)));
  }

  /** A lock that was lost may be ours again by now, under another epoch. */
  protected override forget({ conversation, epoch }: Fence): void {
    if (this.#held.get(conversation)?.fence.epoch === epoch) this.#held.delete(conversation);
  }
}

/**
 * The locks of a program that reaches us through a server, and renews them itself. They are not kept in memory, but found in the store by
 * the name that the program chose for itself, so they outlive this process.
 */
export class ClientLocks extends TrackerLocks {
  readonly #owner: string;
  readonly #worker: string;

  constructor(parts: TrackerParts, agent: string, { owner, holder }: { owner: string; holder: string }) {
    // Two owners may choose the same name.
    const worker = `client ${JSON.stringify([owner, holder])}`;
    super(parts, agent, { id: worker, process: clientProcess(holder) });
    this.#owner = owner;
    this.#worker = worker;
  }

  async held(conversation: string): Promise<HeldLock | null> {
    const { lock } = await this.parts.store.summary(this.#owner, conversation);
    if (lock?.holder !== this.#worker) return null;
    return this.took({ conversation, owner: this.#owner, epoch: lock.epoch });
  }

  /** False: the lock is lost. */
  async renew({ fence }: HeldLock): Promise<boolean> {
    const { store, settings } = this.parts;
    return (await store.renew([fence], settings.leaseMs)).length === 0;
  }

  /** Each call gets a random range of numbers: servers of several machines may serve one program, and they share no clock. */
  protected took(fence: Fence): HeldLock {
    return { fence, counter: randomInt(2 ** 46) * MOST_WRITES };
  }
}

/** The most writes of one call. */
const MOST_WRITES = 64;
