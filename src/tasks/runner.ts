import { randomUUID } from 'node:crypto';
import { DamagedRows, isDamage, isStorageFault } from '../core/errors.ts';
import { ClaimLoop } from '../leases/claim-loop.ts';
import { LeaseKeeper, taskLeases } from '../leases/lease-keeper.ts';
import { SetAside } from '../leases/set-aside.ts';
import type { TaskClaim, TaskFence } from '../ports/store/tasks.ts';
import type { TaskParts } from './parts.ts';
import type { StopReason } from './task-turn.ts';
import { TaskWork } from './work.ts';

/** How long notifications are collected before a claim: a streaming agent changes its conversation many times a second. */
const COLLECT_MS = 20;

/**
 * Claims tasks and runs them.
 *
 *   wake ──▶ claim while more tasks may run ──▶ run ──▶ at rest: wake again, one more may run
 *
 * A `LeaseKeeper` renews the leases of running tasks, and frees those of dead runners.
 */
export class TaskRunner {
  readonly #parts: TaskParts;
  readonly #id = randomUUID();
  readonly #wanted = new Set<string>();
  readonly #running = new Map<string, Running>();
  readonly #stopListening: () => void;
  readonly #loop = new ClaimLoop(() => this.#claimAll());
  readonly #keeper: LeaseKeeper<TaskFence>;
  readonly #aside: SetAside;
  #closed = false;
  #pause: NodeJS.Timeout | null = null;

  constructor(parts: TaskParts) {
    this.#parts = parts;
    this.#aside = new SetAside('task', parts);
    const holder = {
      held: () => [...this.#running.values()].map(({ fence }) => fence),
      lost: (fence: TaskFence) => this.#lost(fence),
      wake: () => this.#loop.wake(),
      onFault: (error: unknown, where: string) => void this.#report(error, where),
    };
    this.#keeper = new LeaseKeeper(taskLeases(parts.store), holder, parts);
    this.#stopListening = parts.store.listen((moved) => this.#onBell(moved));
    if (parts.settings.claims !== 'own') this.#loop.wake();
  }

  /** This process runs these tasks as soon as they can be claimed. */
  want(...tasks: readonly string[]): void {
    for (const task of tasks) this.#wanted.add(task);
    this.#loop.wake();
  }

  /** Whether this process works on the task, or will as soon as it can. */
  takes(task: string): boolean {
    return (
      !this.#closed && (this.#parts.settings.claims !== 'own' || this.#wanted.has(task) || this.#running.has(task))
    );
  }

  get isWorking(): boolean {
    return this.#running.size > 0;
  }

  /** Queues the tasks of dead runners. True: there were some. Reading must work although the storage cannot be written. */
  async freeDead(): Promise<boolean> {
    try {
      return await this.#keeper.freeDead();
    } catch (error) {
      this.#report(error, 'looking for dead runners');
      return false;
    }
  }

  /** Idempotent. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#stopListening();
    if (this.#pause !== null) clearTimeout(this.#pause);
    for (const { stop } of this.#running.values()) stop('shutdown');
    await this.#loop.close();
    for (const { stop } of this.#running.values()) stop('shutdown');
    await Promise.all([...this.#running.values()].map(({ done }) => done));
    this.#keeper.stop();
  }

  #onBell(moved: readonly string[] | null): void {
    const held = moved === null ? [...this.#running.keys()] : moved.filter((id) => this.#running.has(id));
    for (const id of held) void this.#checkCancelled(id);
    if (moved === null || moved.some((id) => this.#wanted.has(id) && !this.#running.has(id))) this.#loop.wake();
    else if (this.#parts.settings.claims !== 'own' && held.length < moved.length) this.#wakeSoon();
  }

  /** Reads whether somebody has asked to cancel the task: any process may store that. */
  async #checkCancelled(id: string): Promise<void> {
    const running = this.#running.get(id);
    if (running === undefined) return;
    try {
      const task = await this.#parts.store.tasks.find(running.fence.owner, id);
      if (task?.cancelRequested) running.stop('cancelled');
    } catch (error) {
      this.#report(error, 'looking at a task');
    }
  }

  #wakeSoon(): void {
    this.#pause ??= setTimeout(() => {
      this.#pause = null;
      this.#loop.wake();
    }, COLLECT_MS).unref();
  }

  async #claimAll(): Promise<void> {
    try {
      while (!this.#closed && (await this.#claim())) {}
      if (!this.#closed && (await this.#keeper.freeDead())) this.#loop.wake();
    } catch (error) {
      this.#report(error, 'taking up tasks'); // the bell or the heartbeat wakes us again
      if (isDamage(error)) this.#parts.onTrouble(error);
    }
  }

  async #claim(): Promise<boolean> {
    const { store, processes, sandboxes, settings } = this.#parts;
    const own = settings.claims === 'own';
    if (own && this.#wanted.size === 0) return false;
    this.#keeper.start();
    const request = {
      worker: { id: this.#id, process: processes.self() },
      place: sandboxes.place,
      leaseMs: settings.leaseMs,
      limit: settings.parallel,
      held: [...this.#running.keys()],
      ...(own && { only: [...this.#wanted].filter((id) => !this.#running.has(id)) }),
    };
    const claim = await this.#unlessDamaged((aside) => store.tasks.claim({ ...request, aside }));
    if (claim === null) return false;
    this.#start(claim);
    return true;
  }

  /** Sets aside a task whose rows are damaged, and looks for the next one. */
  async #unlessDamaged<T>(claim: (aside: string[]) => Promise<T>): Promise<T> {
    for (;;) {
      try {
        return await claim(this.#aside.ids());
      } catch (error) {
        if (!(error instanceof DamagedRows)) throw error;
        this.#aside.add(error.id, error);
      }
    }
  }

  #start(claim: TaskClaim): void {
    const abort = new AbortController();
    const stop = (reason: StopReason) => abort.abort(reason);
    const done = this.#work(claim, abort.signal);
    this.#running.set(claim.task.id, { fence: claim.fence, stop, done });
    if (claim.task.cancelRequested) stop('cancelled');
    if (this.#closed) stop('shutdown');
    // A cancel request may have come since the claim.
    void this.#checkCancelled(claim.task.id);
  }

  async #work(claim: TaskClaim, stop: AbortSignal): Promise<void> {
    const { fence, task } = claim;
    try {
      await new TaskWork(this.#parts, claim, stop).run();
      if (stop.reason !== 'shutdown' && stop.reason !== 'lease_lost') this.#wanted.delete(task.id);
      this.#aside.remove(task.id);
      // Does nothing for a task that is at rest or that another runner holds. One that was stopped can be claimed again.
      await this.#parts.store.tasks.release(fence);
    } catch (error) {
      if (isDamage(error)) this.#aside.add(task.id, error);
      // After a bug the lease is left to expire: if it were released, the task would be claimed and fail again at once.
      if (this.#report(error, `task ${task.id}`)) this.#wanted.delete(task.id);
      else await this.#parts.store.tasks.release(fence).catch(() => {});
    }
    this.#running.delete(task.id);
    this.#loop.wake();
  }

  /** A task that has just come to rest has no lease either. Its stored state shows which of the two happened. */
  async #lost({ task: id, epoch }: TaskFence): Promise<void> {
    const running = this.#running.get(id);
    if (running?.fence.epoch !== epoch) return;
    const task = await this.#parts.store.tasks.find(running.fence.owner, id);
    if (task === null || task.state === 'running' || task.state === 'queued') running.stop('lease_lost');
  }

  /** True: it is a bug. A lost lease and a storage fault are not reported: the next write gets the fault again. */
  #report(error: unknown, where: string): boolean {
    if (isStorageFault(error)) return false;
    this.#parts.onBug(error, where);
    return true;
  }
}

interface Running {
  readonly fence: TaskFence;
  readonly stop: (reason: StopReason) => void;
  readonly done: Promise<void>;
}
