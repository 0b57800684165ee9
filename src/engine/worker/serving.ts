import { DamagedRows, isDamage, isStorageFault, isTransientFault } from '../../core/errors.ts';
import type { Delayed } from '../../core/limits/slots.ts';
import type { Standing } from '../../core/turn/standing.ts';
import { hasEnded } from '../../core/turn/turn.ts';
import { ClaimLoop } from '../../leases/claim-loop.ts';
import { SetAside } from '../../leases/set-aside.ts';
import type { Claim, ClaimRequest, NextClaim } from '../../ports/store/leases.ts';
import type { EngineParts } from '../parts.ts';
import type { Held } from './held.ts';
import type { Listing } from './listing.ts';
import { type Slot, Slots, Wanted } from './slots.ts';

/** What the worker does for those that get a slot. */
export interface Holder {
  readonly held: ReadonlyMap<string, Held>;
  /** A conversation was claimed: its turns run in this slot. */
  take(claim: Claim, slot: Slot): void;
  /** One that is held here has a slot now. */
  begin(held: Held): void;
  /** Before the first claim: leases must be renewed from then on. */
  starts(): void;
  /** Frees what dead processes hold. True: there was some. */
  freeDead(): Promise<boolean>;
}

/**
 * Gives the slots of this process away.
 *
 *   wake ──▶ while a slot is free: whose turn is next, of all that wait? ──▶ claim its conversation, or continue in one that is held
 */
export class Serving {
  readonly slots: Slots;
  /** The turns that this process waits for. */
  readonly wanted = new Wanted();
  /** The conversations that cannot be continued now, because what is stored of them is damaged. */
  readonly aside: SetAside;
  readonly #parts: EngineParts;
  readonly #listing: Listing;
  readonly #holder: Holder;
  readonly #loop = new ClaimLoop(() => this.#serveAll());
  #closed = false;

  constructor(parts: EngineParts, listing: Listing, holder: Holder) {
    this.#parts = parts;
    this.#listing = listing;
    this.#holder = holder;
    this.aside = new SetAside('conversation', parts);
    const { maxRunning: parallel, maxRunningPerOwner: perOwner } = parts.settings;
    this.slots = new Slots({ parallel, perOwner }, (freed) => {
      parts.onSlots?.({ parallel, ...this.slots.load });
      if (freed) this.wake();
    });
    parts.onSlots?.({ parallel, ...this.slots.load });
  }

  /** Whether this process also runs what others have submitted. */
  get takesUp(): boolean {
    return this.#parts.settings.claims !== 'own';
  }

  /** A turn or a slot may have become free. */
  wake(): void {
    this.#loop.wake();
  }

  /** No slot is given away any more; resolves when the last claim has been made. */
  close(): Promise<void> {
    this.#closed = true;
    return this.#loop.close();
  }

  /** Null: there is none to claim; of one that is named: another process holds it. */
  async claim(which: Pick<ClaimRequest, 'conversation' | 'settle'>): Promise<Claim | null> {
    this.#holder.starts();
    const { store } = this.#parts;
    const request = { ...this.#request(), ...which };
    if (which.conversation !== undefined) return store.claim(request);
    return this.#unlessDamaged({ ...request, held: [...this.#holder.held.keys()] }, (one) => store.claim(one));
  }

  /** One whose rows are damaged is set aside, and the next one looked for. */
  async #unlessDamaged<T>(request: ClaimRequest, look: (request: ClaimRequest) => Promise<T>): Promise<T> {
    for (;;) {
      try {
        return await look({ ...request, held: [...(request.held ?? []), ...this.aside.ids()] });
      } catch (error) {
        if (!(error instanceof DamagedRows)) throw error;
        this.aside.add(error.id, error);
      }
    }
  }

  /** Why an open turn that this process can run has not begun; null: it has, or is about to, or others run it. */
  whyDelayed({ owner, conversation, turn }: Standing): Delayed | null {
    const held = this.#holder.held.get(conversation);
    const runsHere = this.takesUp || held !== undefined || this.wanted.has(owner, conversation);
    const waits = turn.state === 'queued' && held?.state.is !== 'working';
    if (!waits || !runsHere || !this.#parts.agents.has(turn.agent)) return null;
    return this.slots.whyDelayed(owner, turn.n);
  }

  async #serveAll(): Promise<void> {
    if (this.takesUp) this.#listing.keep();
    try {
      const tried = new Set<string>();
      while (!this.#closed && this.slots.isFree) {
        const next = await this.#fairest(tried);
        if (next !== null) await this.#serve(next, tried);
        else if (await this.#holder.freeDead()) tried.clear();
        else break;
      }
    } catch (error) {
      if (!isStorageFault(error)) this.#parts.onBug(error, 'claiming');
      else if (isTransientFault(error) || isDamage(error)) this.#parts.onTrouble(error);
      // A notification or the heartbeat wakes us again.
    }
    this.slots.served();
  }

  /**
   * The conversation whose turn is next, among those that are held here and due, those that this process waits for, and those that
   * it takes up. Of the same owner the first of these: it needs no other process, nor a new session. Null: none can get a slot.
   */
  async #fairest(tried: ReadonlySet<string>): Promise<Waiting | null> {
    const { held } = this.#holder;
    const other = await this.#nextInStore(tried);
    const due = held.values().filter(({ isDue }) => isDue);
    // `all` finds its own among all.
    const isAll = this.#parts.settings.claims === 'all';
    const aside = this.aside.ids();
    const own = isAll ? [] : this.wanted.firsts((id) => held.has(id) || tried.has(id) || aside.includes(id));
    return this.slots.choose<Waiting>([
      ...due.map((one) => ({ owner: one.conversation.owner, conversation: one.conversation.id, due: one })),
      ...[...own].map((one) => ({ ...one, isOwn: true })),
      ...(other === null || held.has(other.conversation) ? [] : [other]),
    ]);
  }

  async #nextInStore(tried: ReadonlySet<string>): Promise<NextClaim | null> {
    if (!this.takesUp) return null;
    this.#holder.starts();
    const idleMs = this.#parts.settings.claims === 'left' ? TAKE_UP_MS : 0;
    const held = [...this.#holder.held.keys(), ...tried];
    const request = { ...this.#request(), idleMs, share: this.slots.share, held };
    return this.#unlessDamaged(request, (one) => this.#parts.store.next(one));
  }

  async #serve({ owner, conversation, due, isOwn }: Waiting, tried: Set<string>): Promise<void> {
    const slot = this.slots.give(owner);
    if (due !== undefined) {
      due.slot = slot;
      return this.#holder.begin(due);
    }
    tried.add(conversation);
    try {
      const isOpen = !isOwn || (await this.#stillWanted(owner, conversation));
      const claim = isOpen && !this.#holder.held.has(conversation) ? await this.claim({ conversation }) : null;
      if (claim !== null) return this.#holder.take(claim, slot);
    } catch (error) {
      // Damage to one of them must not keep the others waiting.
      if (isDamage(error)) this.aside.add(conversation, error);
      else {
        slot.free({ quietly: true });
        throw error;
      }
    }
    slot.free({ quietly: true });
  }

  /** Another process may have run our turns meanwhile. */
  async #stillWanted(owner: string, conversation: string): Promise<boolean> {
    for (const id of [...this.wanted.turns(owner, conversation)]) {
      const turn = await this.#parts.store.findTurn(owner, id);
      if (turn === null || hasEnded(turn.state)) this.wanted.remove(owner, conversation, id);
    }
    return this.wanted.has(owner, conversation);
  }

  #request() {
    return { ...this.#listing.self(), driver: 'worker', leaseMs: this.#parts.settings.leaseMs } as const;
  }
}

/** `claims: left`: how long a turn of another process may wait before this one takes it up. */
const TAKE_UP_MS = 1_000;

/** A conversation whose turn waits for a slot. `due`: it is held here. `isOwn`: this process waits for it. */
interface Waiting extends NextClaim {
  readonly due?: Held;
  readonly isOwn?: boolean;
}
