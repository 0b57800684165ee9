import { randomUUID } from 'node:crypto';
import { hasEnded } from '../../core/turn.ts';
import { ClaimLoop } from '../../leases/claim-loop.ts';
import type { LeaseKeeper } from '../../leases/lease-keeper.ts';
import type { Claim, Fence } from '../../ports/store/leases.ts';
import { isPassing, isStorageFault } from '../faults.ts';
import type { EngineParts } from '../parts.ts';

/** What claiming must know of what is held already, and to whom it gives what it got. */
export interface Holder {
  holds(conversation: string): boolean;
  /** All that it holds. */
  held(): string[];
  hasRoom(): boolean;
  take(claim: Claim): void;
}

/**
 * Takes conversations that have an open turn: all that are free (`claims: all`), or those in which this process waits for a
 * turn of its own.
 */
export class Claims {
  readonly #parts: EngineParts;
  readonly #keeper: LeaseKeeper<Fence>;
  readonly #holder: Holder;
  readonly #worker = randomUUID();
  /** By conversation: the turns that this process waits for, and whose they are. */
  readonly #wanted = new Map<string, Map<string, { readonly owner: string }>>();
  readonly #loop = new ClaimLoop(() => this.#pass());
  #closed = false;

  constructor(parts: EngineParts, keeper: LeaseKeeper<Fence>, holder: Holder) {
    this.#parts = parts;
    this.#keeper = keeper;
    this.#holder = holder;
  }

  want(owner: string, conversation: string, turn: string): void {
    const turns = this.#wanted.get(conversation) ?? new Map();
    this.#wanted.set(conversation, turns.set(turn, { owner }));
  }

  wants(conversation: string): boolean {
    return this.#wanted.has(conversation);
  }

  /** The turn has ended: nobody waits for it any more. */
  settle(conversation: string, turn: string): void {
    const turns = this.#wanted.get(conversation);
    turns?.delete(turn);
    if (turns?.size === 0) this.#wanted.delete(conversation);
  }

  /** Something may have become claimable. */
  wake(): void {
    this.#loop.wake();
  }

  close(): Promise<void> {
    this.#closed = true;
    return this.#loop.close();
  }

  /** Null: there is none; of the one that is named: another process holds it. */
  async claim(conversation?: string): Promise<Claim | null> {
    const { store, sandboxes, agents, settings, processes } = this.#parts;
    this.#keeper.start();
    return store.claim({
      worker: { id: this.#worker, process: processes.self() },
      place: sandboxes.place,
      agents: [...agents.keys()],
      driver: 'worker',
      leaseMs: settings.leaseMs,
      ...(conversation === undefined ? { held: this.#holder.held() } : { conversation }),
    });
  }

  async #pass(): Promise<void> {
    try {
      if (this.#parts.settings.claims === 'all') await this.#claimReady();
      else for (const conversation of this.#wanted.keys()) await this.#claimWanted(conversation);
    } catch (error) {
      if (!isStorageFault(error)) this.#parts.onBug(error, 'claiming');
      else if (isPassing(error)) this.#parts.onTrouble(error);
      // The bell or the heartbeat wakes us again.
    }
  }

  async #claimReady(): Promise<void> {
    while (this.#holder.hasRoom() && (await this.#taken())) {}
    if (await this.#keeper.freeDead()) this.wake();
  }

  async #claimWanted(conversation: string): Promise<void> {
    if (this.#holder.holds(conversation) || !this.#holder.hasRoom() || this.#closed) return;
    if (!(await this.#stillWanted(conversation))) return;
    if (await this.#taken(conversation)) return;
    if (await this.#keeper.freeDead()) await this.#taken(conversation);
  }

  async #taken(conversation?: string): Promise<boolean> {
    const claim = await this.claim(conversation);
    if (claim !== null) this.#holder.take(claim);
    return claim !== null;
  }

  /** Another process may have run our turns meanwhile. */
  async #stillWanted(conversation: string): Promise<boolean> {
    for (const [id, { owner }] of this.#wanted.get(conversation) ?? []) {
      const turn = await this.#parts.store.findTurn(owner, id);
      if (turn === null || hasEnded(turn.state)) this.settle(conversation, id);
    }
    return this.wants(conversation);
  }
}
