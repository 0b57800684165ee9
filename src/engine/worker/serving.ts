import { DamagedRows, isDamage } from '../../core/errors.ts';
import type { Delayed } from '../../core/limits/slots.ts';
import type { Standing } from '../../core/turn/standing.ts';
import { hasEnded } from '../../core/turn/turn.ts';
import type { LeaseKeeper } from '../../leases/lease-keeper.ts';
import { SetAside } from '../../leases/set-aside.ts';
import type { Claim, ClaimRequest, Fence, NextClaim, NextLimits, WorkerInfo } from '../../ports/store/leases.ts';
import type { EngineParts } from '../parts.ts';
import type { Held } from './held.ts';
import { type Slot, Slots } from './slots.ts';

/** The worker, as far as giving slots needs it. */
export interface Holder {
  /** Its identity in leases. */
  readonly self: WorkerInfo;
  readonly held: ReadonlyMap<string, Held>;
  readonly keeper: LeaseKeeper<Fence>;
  /** Called when a slot has become free, and somebody may wait for it. */
  readonly onFree: () => void;
}

/** Who got a slot: a conversation that was claimed for it, or one that is held here already. */
export type Served = { readonly claim: Claim; readonly slot: Slot } | { readonly held: Held };

/** Gives the slots of this process to the turns that wait, fairly between owners. */
export class Serving {
  readonly slots: Slots;
  /** The turns that this process waits for. */
  readonly wanted = new Wanted();
  /** The conversations that cannot be continued, because what is stored of them is damaged. */
  readonly aside: SetAside;
  readonly #parts: EngineParts;
  readonly #holder: Holder;
  #stopped = false;

  constructor(parts: EngineParts, holder: Holder) {
    this.#parts = parts;
    this.#holder = holder;
    this.aside = new SetAside('conversation', parts);
    const { maxRunning: parallel, maxRunningPerOwner: perOwner } = parts.settings;
    this.slots = new Slots({ parallel, perOwner }, (freed) => {
      parts.onSlots?.({ parallel, ...this.slots.load });
      if (freed) holder.onFree();
    });
    parts.onSlots?.({ parallel, ...this.slots.load });
  }

  /** Whether this process also runs what others have submitted. */
  get takesUp(): boolean {
    return this.#parts.settings.claims !== 'own';
  }

  /** From now on no slot is given. */
  stop(): void {
    this.#stopped = true;
  }

  /** Gives free slots as long as somebody waits who may have one, and yields who got them. */
  async *inTurn(): AsyncGenerator<Served> {
    const tried = new Set<string>();
    const claims = new Claims();
    try {
      for (let line: Line | null = null; ; ) {
        if (line === null || line.isSpent) {
          const asked = claims.failed ? Promise.resolve(null) : this.#lineUp(tried).catch(claims.fails);
          line = yield* this.#claimedUntil(asked, claims, tried);
        }
        const next = this.#stopped || !this.slots.isFree ? null : (line?.next(this.slots) ?? null);
        if (next?.due !== undefined) {
          // It may have been left since the line was made.
          if (!next.due.isDue) continue;
          // At once: until its turn has begun, it is still due, and would get another one.
          next.due.giveSlot(this.slots.give(next.owner));
          yield { held: next.due };
          continue;
        }
        if (next !== null) {
          claims.add(this.#claimFor(next, tried));
          continue;
        }
        line = null;
        yield* this.#claimedUntil(claims.end(), claims, tried);
        // A claim that found nothing has freed its slot for the next one.
        if (claims.missed()) continue;
        if (this.#stopped || !this.slots.isFree || !(await this.#holder.keeper.freeDead())) break;
        tried.clear();
      }
    } finally {
      this.slots.served();
    }
  }

  /** Waits for the answer, and yields what is claimed meanwhile. That begins at once, because nobody renews its lease before. */
  async *#claimedUntil<T>(answer: Promise<T>, claims: Claims, tried: Set<string>): AsyncGenerator<Served, T> {
    for (;;) {
      const first = await claims.oneBefore(answer);
      for (const served of claims.made()) {
        yield served;
        if ('claim' in served) tried.delete(served.claim.conversation.id);
      }
      if (first !== ONE_ENDED) return first;
    }
  }

  /** Null: there is nothing to claim, or another process holds the conversation that was named. */
  async claim(which: Pick<ClaimRequest, 'conversation' | 'withoutTurn'>): Promise<Claim | null> {
    this.#holder.keeper.start();
    const { store } = this.#parts;
    const request = { ...this.#request(), ...which };
    if (which.conversation !== undefined) return store.claim(request);
    return this.#unlessDamaged({ ...request, held: [...this.#holder.held.keys()] }, (one) => store.claim(one));
  }

  /** Sets aside a conversation whose rows are damaged, and looks for the next one. */
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

  /** Why an open turn that this process can run has not begun; null: it has begun, will begin soon, or others run it. */
  whyDelayed({ owner, conversation, turn }: Standing): Delayed | null {
    const held = this.#holder.held.get(conversation);
    const runsHere = this.takesUp || held !== undefined || this.wanted.has(owner, conversation);
    const waits = turn.state === 'queued' && (held === undefined || held.state.is === 'warm');
    if (!waits || !runsHere || !this.#parts.agents.has(turn.agent)) return null;
    return this.slots.whyDelayed(owner, turn.n);
  }

  /**
   * Who waits for a slot: conversations that are held here and due, those that this process waits for, and those that it takes up. Those of
   * one owner come in this order: the first need no claim and no new session. Null: no slot is free.
   */
  async #lineUp(tried: ReadonlySet<string>): Promise<Line | null> {
    if (this.#stopped || !this.slots.isFree) return null;
    const { held } = this.#holder;
    const { load, limits } = this.slots;
    const most = { perOwner: PER_OWNER, all: Math.min(IN_LINE, limits.parallel - load.running) };
    const inStore = await this.#nextInStore(tried, most);
    const due = [...held.values()].filter(({ isDue }) => isDue);
    // With `all`, the store also returns those that this process waits for.
    const isAll = this.#parts.settings.claims === 'all';
    const aside = this.aside.ids();
    const own = isAll ? [] : this.wanted.firsts((id) => held.has(id) || tried.has(id) || aside.includes(id));
    return new Line(
      [
        ...due.map((one) => ({ owner: one.conversation.owner, conversation: one.conversation.id, due: one })),
        ...[...own].map((one) => ({ ...one, isOwn: true })),
      ],
      inStore,
      most,
    );
  }

  async #nextInStore(tried: ReadonlySet<string>, most: NextLimits): Promise<NextClaim[]> {
    if (!this.takesUp) return [];
    this.#holder.keeper.start();
    const idleMs = this.#parts.settings.claims === 'left' ? TAKE_UP_MS : 0;
    const request = { ...this.#request(), idleMs, share: this.slots.share };
    const next = (one: ClaimRequest) => this.#parts.store.next(one, most);
    const ask = (held: string[]) => this.#unlessDamaged({ ...request, held }, next);
    const found = await ask([...tried]);
    const { held } = this.#holder;
    // The lease of a conversation that is held here has expired. This is rare, so they are only then excluded: there may be many.
    return found.some(({ conversation }) => held.has(conversation)) ? ask([...held.keys(), ...tried]) : found;
  }

  /** Null: another process has it, or there is nothing to do in it. */
  async #claimFor({ owner, conversation, isOwn }: Waiting, tried: Set<string>): Promise<Served | null> {
    const slot = this.slots.give(owner);
    tried.add(conversation);
    try {
      const isOpen = !isOwn || (await this.#stillWanted(owner, conversation));
      const claim = isOpen && !this.#holder.held.has(conversation) ? await this.claim({ conversation }) : null;
      if (claim !== null) return { claim, slot };
    } catch (error) {
      // A damaged conversation must not block the others.
      if (isDamage(error)) this.aside.add(conversation, error);
      else {
        slot.free({ quietly: true });
        throw error;
      }
    }
    slot.free({ quietly: true });
    return null;
  }

  /** Whether a turn that this process waits for is still open: another process may have run it. */
  async #stillWanted(owner: string, conversation: string): Promise<boolean> {
    for (const id of [...this.wanted.turns(owner, conversation)]) {
      const turn = await this.#parts.store.findTurn(owner, id);
      if (turn === null || hasEnded(turn.state)) this.wanted.remove(owner, conversation, id);
    }
    return this.wanted.has(owner, conversation);
  }

  #request() {
    const { sandboxes, agents, settings } = this.#parts;
    const takes = { place: sandboxes.place, agents: [...agents.keys()], driver: 'worker' } as const;
    return { worker: this.#holder.self, ...takes, leaseMs: settings.leaseMs };
  }
}

const ONE_ENDED: unique symbol = Symbol('one claim has ended');

/** The claims of one round. They run at the same time, because each waits for the store. */
class Claims {
  readonly #running = new Set<Promise<void>>();
  readonly #made: Served[] = [];
  #missed = false;
  #fault: { readonly error: unknown } | null = null;

  /** Keeps the first fault. What was claimed still begins; then the fault is thrown. */
  readonly fails = (error: unknown): null => {
    this.#fault ??= { error };
    return null;
  };

  add(claim: Promise<Served | null>): void {
    const ended = claim.catch(this.fails).then((served) => {
      this.#running.delete(ended);
      if (served === null) this.#missed = true;
      else this.#made.push(served);
    });
    this.#running.add(ended);
  }

  /** The claims that succeeded since the last call. */
  made(): Served[] {
    return this.#made.splice(0);
  }

  get failed(): boolean {
    return this.#fault !== null;
  }

  /** The answer, or the end of a claim: whichever comes first. */
  async oneBefore<T>(answer: Promise<T>): Promise<T | typeof ONE_ENDED> {
    const ends = [...this.#running].map(async (end): Promise<typeof ONE_ENDED> => {
      await end;
      return ONE_ENDED;
    });
    return Promise.race([answer, ...ends]);
  }

  /** Resolves when no claim runs any more, or when one found nothing, which frees its slot. After a fault it waits for all. */
  async end(): Promise<null> {
    while (this.#running.size > 0 && (this.failed || !this.#missed)) await Promise.race(this.#running);
    return null;
  }

  /** Whether a claim has found nothing since the last call. Throws the fault, if there was one. */
  missed(): boolean {
    if (this.#fault !== null) throw this.#fault.error;
    const missed = this.#missed;
    this.#missed = false;
    return missed;
  }
}

/** How many conversations are read from the store at once; never more than there are free slots. */
const IN_LINE = 64;
/** How many of them may belong to one owner. If no other owner waits, the store is read again after this many slots. */
const PER_OWNER = 8;

/**
 * The conversations that wait for a slot, by owner. `Slots.choose` decides between owners each time a slot is given. If others fill the
 * line, an owner who is not in it waits for at most as many slots as there are owners in it.
 */
export class Line {
  readonly #owners: Map<string, Waiting[]>;
  readonly #more: ReadonlySet<string>;
  /** After this many slots, owners who are not in line have to be considered. */
  #left: number;
  #isSpent = false;

  constructor(here: readonly Waiting[], inStore: readonly NextClaim[], most: NextLimits) {
    this.#owners = Map.groupBy<string, Waiting>([...here, ...inStore], ({ owner }) => owner);
    const stored = Map.groupBy(inStore, ({ owner }) => owner);
    this.#more = new Set([...stored].flatMap(([owner, own]) => (own.length < most.perOwner ? [] : [owner])));
    this.#left = inStore.length < most.all ? Number.POSITIVE_INFINITY : stored.size;
  }

  /** The store has to be asked again, because others may wait there. */
  get isSpent(): boolean {
    return this.#isSpent;
  }

  /** Null: nobody in line may have a slot. */
  next(slots: Slots): Waiting | null {
    const owner = slots.choose([...this.#owners.keys()]);
    if (owner === null) return null;
    const own = this.#owners.get(owner) as Waiting[];
    const next = own.shift() as Waiting;
    if (own.length === 0) this.#owners.delete(owner);
    this.#left -= 1;
    this.#isSpent = next.isOwn === true || (own.length === 0 && this.#more.has(owner)) || this.#left === 0;
    return next;
  }
}

/** `claims: left`: how long a turn of another process may wait before this one takes it up. */
const TAKE_UP_MS = 1_000;

/** A conversation whose turn waits for a slot. `due`: it is held here. `isOwn`: this process waits for it. */
interface Waiting extends NextClaim {
  readonly due?: Held;
  readonly isOwn?: boolean;
}

/** The turns that this process waits for, by owner and conversation, in the order in which they came. */
class Wanted {
  readonly #owners = new Map<string, Map<string, Set<string>>>();

  add(owner: string, conversation: string, turn: string): void {
    const conversations = this.#owners.get(owner) ?? new Map<string, Set<string>>();
    this.#owners.set(owner, conversations);
    conversations.set(conversation, (conversations.get(conversation) ?? new Set()).add(turn));
  }

  remove(owner: string, conversation: string, turn: string): void {
    const conversations = this.#owners.get(owner);
    const turns = conversations?.get(conversation);
    turns?.delete(turn);
    if (turns?.size === 0) conversations?.delete(conversation);
    if (conversations?.size === 0) this.#owners.delete(owner);
  }

  turns(owner: string, conversation: string): ReadonlySet<string> {
    return this.#owners.get(owner)?.get(conversation) ?? NONE;
  }

  has(owner: string, conversation: string): boolean {
    return this.turns(owner, conversation).size > 0;
  }

  /** Of every owner, the first conversation that is not skipped. */
  *firsts(skip: (conversation: string) => boolean): Generator<{ owner: string; conversation: string }> {
    for (const [owner, conversations] of this.#owners) {
      const conversation = conversations.keys().find((one) => !skip(one));
      if (conversation !== undefined) yield { owner, conversation };
    }
  }
}

const NONE: ReadonlySet<string> = new Set();
