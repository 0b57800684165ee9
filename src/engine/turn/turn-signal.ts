import type { Permission } from '../../core/turn/permission.ts';
import type { Turn } from '../../core/turn/turn.ts';
import type { TurnStop } from '../../core/turn/turn-decision.ts';
import type { Changes, Watch } from '../reading/changes.ts';
import type { Held } from '../worker/held.ts';

/** A cancel or an answer that comes this much later is not noticed. */
const GATHER_MS = 5;

/**
 * Everything from outside that reaches a running turn: a cancel request and answers to permissions, both stored facts that
 * any process may write; the end of this program; and the loss of the lease.
 */
export class TurnSignal {
  /** Aborts when the turn has to stop, or when the lease is lost. */
  readonly signal: AbortSignal;
  readonly #held: Held;
  readonly #turn: string;
  readonly #cancelled = new AbortController();
  readonly #shutdown: AbortSignal;
  readonly #watch: Watch;
  readonly #waiting = new Map<string, (permission: Permission) => void>();
  readonly #over = new AbortController();
  #pause: NodeJS.Timeout | undefined;

  constructor(held: Held, turn: Turn, changes: Changes, shutdown: AbortSignal) {
    this.#held = held;
    this.#turn = turn.id;
    this.#shutdown = shutdown;
    this.signal = AbortSignal.any([this.#cancelled.signal, shutdown, held.lease.lost]);
    this.#watch = changes.watch(held.conversation.id, true);
    this.lookAgain(); // for whatever came between the begin of the turn and now
    if (turn.cancelRequested) this.#cancelled.abort();
    void this.#listen();
  }

  /** Why the turn has to stop; null: it does not have to. */
  get stop(): TurnStop | null {
    if (this.#cancelled.signal.aborted) return 'cancelled';
    return this.#shutdown.aborted ? 'shutdown' : null;
  }

  /** Calls back once, when the permission has been answered or withdrawn. */
  onPermission(id: string, decided: (permission: Permission) => void): void {
    this.#waiting.set(id, decided);
    this.lookAgain();
  }

  /** For writes of the turn itself, for which there is no notification. */
  lookAgain(): void {
    this.#watch.notify();
  }

  close(): void {
    this.#over.abort('over');
    clearTimeout(this.#pause);
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
        // The store is closed or out of reach: then the lease is lost. The next wait looks again.
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
    const { store } = this.#held.parts;
    const { owner } = this.#held.conversation;
    const turn = await store.findTurn(owner, this.#turn);
    if (turn?.cancelRequested) this.#cancelled.abort();
    for (const [id, decided] of this.#waiting) {
      const permission = await store.findPermission(owner, id);
      if (permission && permission.state !== 'open' && this.#waiting.delete(id)) decided(permission);
    }
  }
}
