import { randomUUID } from 'node:crypto';
import { ThroughlineError } from '../core/errors.ts';
import { ClaimLoop } from '../leases/claim-loop.ts';
import { LeaseKeeper, taskLeases } from '../leases/lease-keeper.ts';
import type { TaskClaim, TaskFence } from '../ports/store/tasks.ts';
import type { TaskParts } from './parts.ts';
import type { StopReason } from './task-turn.ts';
import { TaskWork } from './work.ts';

/** Nobody notices that a task begins so much later. */
const GATHER_MS = 20;

/**
 * The loop that takes up tasks and works on them.
 *
 *   wake ──▶ claim, while there is room ──▶ work ──▶ at rest: wake again, one has ended
 *
 * A `LeaseKeeper` renews the leases of the tasks that it holds, and frees those of dead runners.
 */
export class TaskRunner {
  readonly #parts: TaskParts;
  readonly #id = randomUUID();
  readonly #wanted = new Set<string>();
  readonly #running = new Map<string, Running>();
  readonly #stopListening: () => void;
  readonly #loop = new ClaimLoop(() => this.#claimAll());
  readonly #keeper: LeaseKeeper<TaskFence>;
  #closed = false;
  #pause: NodeJS.Timeout | null = null;

  constructor(parts: TaskParts) {
    this.#parts = parts;
    const holder = {
      held: () => [...this.#running.values()].map(({ fence }) => fence),
      lost: (fence: TaskFence) => this.#lost(fence),
      wake: () => this.#wake(),
      onFault: (error: unknown, where: string) => void this.#report(error, where),
    };
    this.#keeper = new LeaseKeeper(taskLeases(parts.store), holder, parts);
    this.#stopListening = parts.store.listen((moved) => this.#onBell(moved));
    if (parts.settings.claims === 'all') this.#wake();
  }

  /** This process is to work on them, once they are free. */
  want(...tasks: readonly string[]): void {
    for (const task of tasks) this.#wanted.add(task);
    this.#wake();
  }

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
    for (const id of held) void this.#look(id);
    if (moved === null || moved.some((id) => this.#wanted.has(id))) this.#wake();
    else if (this.#parts.settings.claims === 'all' && held.length < moved.length) this.#wakeSoon();
  }

  /** A cancel is a stored fact that any process may write. */
  async #look(id: string): Promise<void> {
    const running = this.#running.get(id);
    if (running === undefined) return;
    try {
      const task = await this.#parts.store.tasks.find(running.fence.owner, id);
      if (task?.cancelRequested) running.stop('cancelled');
    } catch (error) {
      this.#report(error, 'looking at a task');
    }
  }

  /** A task may be new; or an agent says a word in some conversation, which it does many times a second. */
  #wakeSoon(): void {
    this.#pause ??= setTimeout(() => {
      this.#pause = null;
      this.#wake();
    }, GATHER_MS).unref();
  }

  #wake(): void {
    this.#loop.wake();
  }

  async #claimAll(): Promise<void> {
    try {
      while (!this.#closed && (await this.#claim())) {}
      if (!this.#closed && (await this.#keeper.freeDead())) this.#wake();
    } catch (error) {
      this.#report(error, 'taking up tasks'); // the bell or the heartbeat wakes us again
    }
  }

  async #claim(): Promise<boolean> {
    const { store, processes, sandboxes, settings } = this.#parts;
    const own = settings.claims === 'own';
    if (own && this.#wanted.size === 0) return false;
    this.#keeper.start();
    const claim = await store.tasks.claim({
      worker: { id: this.#id, process: processes.self() },
      place: sandboxes.place,
      leaseMs: settings.leaseMs,
      limit: settings.parallel,
      held: [...this.#running.keys()],
      ...(own && { only: [...this.#wanted].filter((id) => !this.#running.has(id)) }),
    });
    if (claim === null) return false;
    this.#start(claim);
    return true;
  }

  #start(claim: TaskClaim): void {
    const abort = new AbortController();
    const stop = (reason: StopReason) => abort.abort(reason);
    const done = this.#work(claim, abort.signal);
    this.#running.set(claim.task.id, { fence: claim.fence, stop, done });
    if (claim.task.cancelRequested) stop('cancelled');
    if (this.#closed) stop('shutdown');
    // A cancel between the claim and now has rung for nobody.
    void this.#look(claim.task.id);
  }

  async #work(claim: TaskClaim, stop: AbortSignal): Promise<void> {
    const { fence, task } = claim;
    try {
      await new TaskWork(this.#parts, claim, stop).run();
      if (stop.reason !== 'shutdown' && stop.reason !== 'lease_lost') this.#wanted.delete(task.id);
      // Does nothing for one that is at rest or another's; one that we leave is free for the next.
      await this.#parts.store.tasks.release(fence);
    } catch (error) {
      // After a fault of this program the lease is left to expire: given back, it would be taken up, and fail, at once.
      if (this.#report(error, `task ${task.id}`)) this.#wanted.delete(task.id);
      else await this.#parts.store.tasks.release(fence).catch(() => {});
    }
    this.#running.delete(task.id);
    this.#wake();
  }

  /** A task that has just come to rest has no lease either: only what is stored says which it is. */
  async #lost({ task: id, epoch }: TaskFence): Promise<void> {
    const running = this.#running.get(id);
    if (running?.fence.epoch !== epoch) return;
    const task = await this.#parts.store.tasks.find(running.fence.owner, id);
    if (task === null || task.state === 'running' || task.state === 'queued') running.stop('lease_lost');
  }

  /**
   * True: it is a fault of this program. A lost lease is nobody's, and one of the storage is met again by whoever writes next.
   */
  #report(error: unknown, where: string): boolean {
    if (error instanceof ThroughlineError && EXPECTED.has(error.code)) return false;
    this.#parts.onBug(error, where);
    return true;
  }
}

const EXPECTED = new Set(['lease_lost', 'storage_full', 'storage_busy', 'storage_readonly', 'closed']);

interface Running {
  readonly fence: TaskFence;
  readonly stop: (reason: StopReason) => void;
  readonly done: Promise<void>;
}
