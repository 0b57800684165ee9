import type { Permission } from '../../core/permission.ts';
import type { Turn } from '../../core/turn.ts';
import type { Store } from '../../ports/store.ts';
import type { Changes, Watch } from '../reading/changes.ts';
import type { Lease } from '../worker/lease.ts';

/** Nobody notices that a cancel or an answer comes so much later. */
const GATHER_MS = 5;

/** Why a running turn has to stop. */
export type StopReason = 'cancelled' | 'shutdown' | 'lease_lost';

/**
 * Everything from outside that reaches a running turn: a cancel request and answers to permissions, both stored facts that
 * any process may write; the end of this program; and the loss of the lease.
 */
export class TurnSignal {
  readonly #stop = new AbortController();
  readonly #store: Store;
  readonly #owner: string;
  readonly #turn: string;
  readonly #watch: Watch;
  readonly #waiting = new Map<string, (permission: Permission) => void>();
  readonly #over = new AbortController();
  readonly #onLost = () => this.stop('lease_lost');
  readonly #lease: Lease;
  #pause: NodeJS.Timeout | undefined;

  constructor(store: Store, changes: Changes, lease: Lease, turn: Turn) {
    this.#store = store;
    this.#lease = lease;
    this.#owner = lease.fence.owner;
    this.#turn = turn.id;
    this.#watch = changes.watch(lease.fence.conversation, true);
    this.lookAgain(); // for whatever came between the begin of the turn and now
    if (lease.lost.aborted) this.#onLost();
    else lease.lost.addEventListener('abort', this.#onLost, { once: true });
    if (turn.cancelRequested) this.stop('cancelled');
    void this.#listen();
  }

  /** Aborts with a `StopReason`. */
  get signal(): AbortSignal {
    return this.#stop.signal;
  }

  get reason(): StopReason | null {
    return this.#stop.signal.aborted ? (this.#stop.signal.reason as StopReason) : null;
  }

  stop(reason: StopReason): void {
    if (!this.#stop.signal.aborted) this.#stop.abort(reason);
  }

  /** Calls back once, when the permission has been answered or withdrawn. */
  onPermission(id: string, settled: (permission: Permission) => void): void {
    this.#waiting.set(id, settled);
    this.lookAgain();
  }

  /** For what the turn itself has written, of which the bell does not tell here. */
  lookAgain(): void {
    this.#watch.ring();
  }

  close(): void {
    this.#over.abort('over');
    clearTimeout(this.#pause);
    this.#lease.lost.removeEventListener('abort', this.#onLost);
    this.#watch.close();
  }

  async #listen(): Promise<void> {
    for (;;) {
      await this.#watch.next(this.#over.signal);
      if (this.#over.signal.aborted) return;
      await this.#gather();
      try {
        await this.#look();
      } catch {
        // The store is closed or out of reach: the lease will tell. Looked at again after the next wait.
      }
    }
  }

  /** A burst is one look, and the turn does not wait for it. */
  #gather(): Promise<void> {
    return new Promise((resolve) => {
      this.#pause = setTimeout(resolve, GATHER_MS);
    });
  }

  async #look(): Promise<void> {
    const turn = await this.#store.findTurn(this.#owner, this.#turn);
    if (turn?.cancelRequested) this.stop('cancelled');
    for (const [id, settled] of this.#waiting) {
      const permission = await this.#store.findPermission(this.#owner, id);
      if (permission && permission.state !== 'open' && this.#waiting.delete(id)) settled(permission);
    }
  }
}
