import {
  type Delayed,
  delayedBy,
  fairest,
  type Load,
  type Share,
  type SlotLimits,
  shareOf,
  whyNoSlot,
} from '../../core/limits/slots.ts';

/** Told whenever the use of the slots has changed. `freed`: a turn that waits for a slot may get one now. */
type OnChange = (freed: boolean) => void;

/**
 * The slots of this process. A free slot is taken at once, unless a turn may be waiting for one. Then the worker decides who gets it:
 * it knows all waiting turns, here and in the store. The rules are in core/limits/slots.ts.
 */
export class Slots {
  readonly limits: SlotLimits;
  readonly #onChange: OnChange;
  readonly #loads = { all: { running: 0, asking: 0 }, owners: new Map<string, Load>() };
  /** The owner who was served last. */
  #after = '';
  #mayWait = false;

  constructor(limits: SlotLimits, onChange: OnChange) {
    this.limits = limits;
    this.#onChange = onChange;
  }

  get isFree(): boolean {
    return this.load.running < this.limits.parallel;
  }

  get load(): Load {
    return this.#loads.all;
  }

  get share(): Share {
    return shareOf(this.#loads, this.limits, this.#after);
  }

  /** Null: no slot is free, or other turns may be waiting. */
  take(owner: string): Slot | null {
    if (!this.#mayWait && this.isFreeFor(owner)) return this.give(owner);
    this.#mayWait = true;
    return null;
  }

  /** Gives a slot to the owner that was chosen. */
  give(owner: string): Slot {
    this.#after = owner;
    this.#change(owner, { running: 1, asking: 0 });
    return new Slot((...change) => this.#change(owner, ...change));
  }

  isFreeFor(owner: string): boolean {
    return whyNoSlot(this.#loads, this.limits, owner) === null;
  }

  /** The waiting owner that gets the next slot; null: each of them has as many as it may. */
  choose(waiting: readonly string[]): string | null {
    return fairest(
      waiting.filter((owner) => this.isFreeFor(owner)),
      this.#loads,
      this.#after,
    );
  }

  /** All slots that could be given away were. If one is still free, those who wait have as many as they may. */
  served(): void {
    this.#mayWait = !this.isFree;
  }

  whyDelayed(owner: string, n: number): Delayed | null {
    const reason = this.limits.parallel === 0 ? null : whyNoSlot(this.#loads, this.limits, owner);
    return reason && delayedBy(reason, n, this.limits);
  }

  #change(owner: string, by: Load, quietly = false): void {
    const asking = this.load.asking >= this.limits.parallel;
    const mayWait = this.#mayWait || asking || !this.isFreeFor(owner);
    const now = sum(this.#loads.owners.get(owner), by);
    if (now.running === 0 && now.asking === 0) this.#loads.owners.delete(owner);
    else this.#loads.owners.set(owner, now);
    this.#loads.all = sum(this.#loads.all, by);
    const freed = mayWait && !quietly && (by.running < 0 || by.asking < 0);
    // Nobody takes it before the worker has chosen.
    if (freed) this.#mayWait = true;
    this.#onChange(freed);
  }
}

function sum(a: Load = { running: 0, asking: 0 }, b: Load): Load {
  return { running: a.running + b.running, asking: a.asking + b.asking };
}

/** The right to run one turn. */
export class Slot {
  readonly #change: (by: Load, quietly?: boolean) => void;
  #is: 'running' | 'asking' | 'free' = 'running';

  constructor(change: (by: Load, quietly?: boolean) => void) {
    this.#change = change;
  }

  /** The turn waits for an answer: others may run meanwhile. */
  ask(): void {
    if (this.#is !== 'running') return;
    this.#is = 'asking';
    this.#change({ running: -1, asking: 1 });
  }

  /** The question was answered. The turn continues at once, even if another one has begun meanwhile. */
  resume(): void {
    if (this.#is !== 'asking') return;
    this.#is = 'running';
    this.#change({ running: 1, asking: -1 });
  }

  /** May be repeated. `quietly`: nobody has to be told, because the caller gives slots away anyway. */
  free({ quietly = false } = {}): void {
    const was = this.#is;
    if (was === 'free') return;
    this.#is = 'free';
    this.#change(was === 'running' ? { running: -1, asking: 0 } : { running: 0, asking: -1 }, quietly);
  }
}
