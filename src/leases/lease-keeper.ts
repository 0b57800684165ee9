import type { SandboxProcess } from '../core/process.ts';
import type { Clock } from '../ports/clock.ts';
import type { Processes } from '../ports/processes.ts';
import type { Sandboxes } from '../ports/sandbox.ts';
import type { Fence, LeasedWorker } from '../ports/store/leases.ts';
import type { TaskFence } from '../ports/store/tasks.ts';
import type { Store } from '../ports/store.ts';

/*
 * Keeps the leases of one holder. The worker and the tracker hold conversations, the task runner holds tasks. From the first
 * claim until `stop`:
 *
 *   every leaseMs / 3         heartbeat: renews what is held, and tells the holder what it has lost
 *   every second, or sooner   look: frees what provably dead holders left (R2), then wakes whoever waits to claim. Also right after
 *                             another holder's lease has ended: nobody announces a lease that runs out
 *   cut off                   when nothing could be renewed for nine tenths of leaseMs, and others may reach the store all the same:
 *                             everything that is held is lost, so that its work stops before somebody else takes over
 *
 * The first look, and the one after a dead holder was found, also end the programs that nobody recorded. A program that was just being
 * started when its holder was killed may not have its mark yet when we look for the first time.
 *
 * A fault in either goes to `onFault`; the next heartbeat or look tries again.
 */
export class LeaseKeeper<F> {
  readonly #kind: LeaseKind<F>;
  readonly #holder: LeaseHolder<F>;
  readonly #parts: KeeperParts;
  #timers: NodeJS.Timeout[] = [];
  #lookedAt = Number.NEGATIVE_INFINITY;
  /** When the last heartbeat began that did its work. */
  #renewedAt = 0;
  #looking: Promise<boolean> | null = null;
  #orphansDue = true;
  /** The look right after the next lease of another holder ends. */
  #atEnd: NodeJS.Timeout | undefined;
  #orphansEnded: Promise<void> = Promise.resolve();

  constructor(kind: LeaseKind<F>, holder: LeaseHolder<F>, parts: KeeperParts) {
    this.#kind = { ...kind, holders: async () => this.#watch(await kind.holders()) };
    this.#holder = holder;
    this.#parts = parts;
  }

  /** Call it before every claim; it starts once. A process that never claims anything has no timers. */
  start(): void {
    if (this.#timers.length > 0) return;
    const every = (ms: number, work: () => Promise<void>) => setInterval(() => void work(), ms).unref();
    const { leaseMs } = this.#parts.settings;
    const beatMs = leaseMs / 3;
    this.#renewedAt = this.#parts.clock.monotonic();
    this.#timers = [every(beatMs, () => this.#beat())];
    if (this.#kind.isElsewhere) this.#timers.push(every(leaseMs / 30, () => this.#giveUp()));
    if (this.#holder.wake) this.#timers.push(every(Math.min(beatMs, LOOK_MS), () => this.look()));
  }

  stop(): void {
    for (const timer of this.#timers) clearInterval(timer);
    this.#timers = [];
    clearTimeout(this.#atEnd);
  }

  /** Looks again when the next lease ends. If that is renewed before, the look finds nothing. */
  #watch(holders: LeasedWorker[]): LeasedWorker[] {
    const left = holders.flatMap(({ leftMs }) => (leftMs !== undefined && leftMs > 0 ? [leftMs] : []));
    const soonest = Math.min(...left);
    clearTimeout(this.#atEnd);
    if (soonest < LOOK_MS && this.#timers.length > 0)
      this.#atEnd = setTimeout(() => void this.look(), soonest + 1).unref();
    return holders;
  }

  /** Looks once: processes that dead holders left running must not wait for the next claim. */
  look(): Promise<void> {
    return this.#reporting(`looking for dead holders of ${this.#kind.of}`, async () => {
      // Also when dead holders cannot be found, because rows are damaged: the others can be claimed.
      await this.freeDead().finally(() => this.#holder.wake?.());
      await this.#orphansEnded;
    });
  }

  /** The function `freeDead` for this kind of lease, at most ten times a second. */
  async freeDead(): Promise<boolean> {
    if (this.#looking !== null) return this.#looking;
    const now = this.#parts.clock.monotonic();
    if (now - this.#lookedAt < LOOK_AGAIN_MS) return false;
    this.#lookedAt = now;
    this.#looking = this.#free().finally(() => {
      this.#looking = null;
    });
    return this.#looking;
  }

  async #free(): Promise<boolean> {
    const found = await freeDead(this.#kind, this.#parts);
    // Nobody waits for this to claim: what dead holders had recorded is ended, and a look at all processes takes milliseconds.
    if (this.#orphansDue)
      this.#orphansEnded = this.#reporting('ending orphans', () => endOrphans(this.#parts.sandboxes));
    this.#orphansDue = found;
    return found;
  }

  #beat(): Promise<void> {
    return this.#reporting(`heartbeat of ${this.#kind.of}`, async () => {
      const begun = this.#parts.clock.monotonic();
      const held = this.#holder.held();
      const lost = held.length > 0 ? await this.#kind.renew(held, this.#parts.settings.leaseMs) : [];
      this.#renewedAt = begun;
      for (const fence of lost) await this.#holder.lost(fence);
    });
  }

  /** A heartbeat may hang in a connection that is cut, so this does not wait for one. */
  #giveUp(): Promise<void> {
    return this.#reporting(`cut off with ${this.#kind.of}`, async () => {
      const { clock, settings } = this.#parts;
      if (clock.monotonic() - this.#renewedAt < settings.leaseMs * 0.9) return;
      await Promise.all(this.#holder.held().map((fence) => this.#holder.lost(fence)));
    });
  }

  async #reporting(where: string, work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      this.#holder.onFault(error, where);
    }
  }
}

/**
 * Ends the processes that provably dead holders left running, then frees their leases (R2). In this order, so that the next look finds the
 * rest if this process dies in between. True: there were some.
 */
export async function freeDead<F>(kind: LeaseKind<F>, { processes, sandboxes }: LookingParts): Promise<boolean> {
  const dead = (await kind.holders()).filter((holder) => processes.status(holder.process) === 'dead');
  if (dead.length > 0) await endOrphans(sandboxes);
  for (const { id } of dead) {
    const left = await kind.leftBy(id);
    await Promise.all(left.map((process) => sandboxes.end(process)));
    await kind.forget(id);
  }
  return dead.length > 0;
}

/** Ends what dead processes of this data home have started, whether it was recorded or not. */
async function endOrphans(sandboxes: LookingParts['sandboxes']): Promise<void> {
  const orphans = await sandboxes.orphans();
  await Promise.all(orphans.map((process) => sandboxes.end(process)));
}

/** What the store can do with one kind of lease. */
export interface LeaseKind<F> {
  /** What is leased, in words for the log. */
  readonly of: string;
  /** Whether others may take over what nobody could renew here (`Store.isElsewhere`). */
  readonly isElsewhere: boolean;
  /** Prolongs leases; returns those that are lost. */
  renew(fences: readonly F[], leaseMs: number): Promise<F[]>;
  /** Who holds leases now. */
  holders(): Promise<LeasedWorker[]>;
  /** The processes to end before the leases of a dead holder are free. */
  leftBy(holder: string): Promise<SandboxProcess[]>;
  /** Frees every lease of a dead holder. */
  forget(holder: string): Promise<void>;
}

export function conversationLeases(store: Store): LeaseKind<Fence> {
  return {
    of: 'conversations',
    isElsewhere: store.isElsewhere,
    renew: (fences, leaseMs) => store.renew(fences, leaseMs),
    // Also workers that hold nothing and only take up turns: nobody should wait for a dead one.
    holders: async () => [
      ...new Map([...(await store.takers()), ...(await store.workers())].map((one) => [one.id, one])).values(),
    ],
    leftBy: (holder) => store.processesOf(holder),
    forget: (holder) => store.forgetWorker(holder),
  };
}

export function taskLeases({ tasks }: Store): LeaseKind<TaskFence> {
  return {
    of: 'tasks',
    isElsewhere: false, // the turns of a task have leases of their own
    renew: (fences, leaseMs) => tasks.renew(fences, leaseMs),
    holders: () => tasks.holders(),
    // Its turns run under leases of their own; whoever claims the task next ends its gate.
    leftBy: async () => [],
    forget: (holder) => tasks.forgetHolder(holder),
  };
}

/** Whose leases they are. */
export interface LeaseHolder<F> {
  /** The fences that are held now. */
  held(): readonly F[];
  /** One of them is lost. It may meanwhile have been given back, or claimed again under another epoch. */
  lost(fence: F): void | Promise<void>;
  /** Something may have become claimable. Left out: nobody waits here, and dead holders are not looked for. */
  wake?(): void;
  onFault(error: unknown, where: string): void;
}

/** What finds dead holders, and what they left in sandboxes. */
interface LookingParts {
  readonly processes: Pick<Processes, 'status'>;
  readonly sandboxes: Pick<Sandboxes, 'end' | 'orphans'>;
}

export interface KeeperParts extends LookingParts {
  readonly clock: Clock;
  readonly settings: { readonly leaseMs: number };
}

const LOOK_MS = 1_000;
const LOOK_AGAIN_MS = 100;
