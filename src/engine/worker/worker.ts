import type { Conversation } from '../../core/conversation.ts';
import { ThroughlineError } from '../../core/errors.ts';
import { conversationLeases, LeaseKeeper } from '../../leases/lease-keeper.ts';
import type { Claim, Fence } from '../../ports/store/leases.ts';
import type { Enqueued, NewTurn } from '../../ports/store/turns.ts';
import { isStorageFault } from '../faults.ts';
import type { EngineParts } from '../parts.ts';
import type { Changes } from '../reading/changes.ts';
import { Claims } from './claims.ts';
import { type Expected, expectTurn } from './expected-turn.ts';
import { lookAhead } from './head-start.ts';
import { Hold } from './hold.ts';
import { Lease } from './lease.ts';
import { type Entry, TurnLoop } from './turn-loop.ts';
import { WarmSessions } from './warm-sessions.ts';

/*
 * The loop that claims conversations and runs their turns.
 *
 *   wake ──▶ claim ──▶ hold ──▶ recover what an earlier holder left ──▶ run turns in order ──▶ keep warm ──▶ let go
 *
 * A hold is either busy (its turns are being run) or warm (its session waits for the next turn). While it is held, every
 * turn of the conversation runs here, whoever submitted it; all others follow the stored events.
 */
export class Worker {
  readonly #parts: EngineParts;
  readonly #claims: Claims;
  readonly #turns: TurnLoop;
  readonly #holds = new Map<string, Entry>();
  readonly #warm: WarmSessions<Entry>;
  readonly #leaving = new Set<Promise<void>>();
  readonly #keeper: LeaseKeeper<Fence>;
  readonly #shutdown = new AbortController();
  readonly #stopping = { isClosed: false, shutdown: this.#shutdown.signal };
  readonly #stopListening: () => void;
  readonly #looking: Promise<void>;

  constructor(parts: EngineParts, changes: Changes) {
    this.#parts = parts;
    const { maxWarm, idleMs } = parts.settings;
    this.#warm = new WarmSessions(maxWarm, idleMs, (entry) => void this.#letGo(entry));
    const leases = {
      held: () => [...this.#holds.values()].map((entry) => entry.hold.lease.fence),
      lost: (fence: Fence) => this.#lost(fence),
      wake: () => this.#claims.wake(),
      onFault: (error: unknown, where: string) => isStorageFault(error) || parts.onBug(error, where),
    };
    this.#keeper = new LeaseKeeper(conversationLeases(parts.store), leases, parts);
    this.#claims = new Claims(parts, this.#keeper, {
      holds: (conversation) => this.#holds.has(conversation),
      held: () => [...this.#holds.keys()],
      hasRoom: () => this.#holds.size - this.#warm.size < parts.settings.maxRunning,
      take: (claim) => void this.#hold(claim, 0),
    });
    this.#turns = new TurnLoop(parts, changes, this.#claims, this.#stopping);
    this.#stopListening = changes.onAny((moved) => this.#onBell(moved));
    this.#looking = this.#keeper.look();
    if (parts.settings.claims === 'all') this.#claims.wake();
  }

  /** The owner's conversation, as far as it is held here: what never changes of it need not be read. */
  held(owner: string, id: string): Conversation | null {
    const conversation = this.#holds.get(id)?.hold.conversation;
    return conversation?.owner === owner ? conversation : null;
  }

  /** This process waits for a turn: its conversation is claimed when it is free. */
  want(owner: string, conversation: string, turn: string): void {
    this.#claims.want(owner, conversation, turn);
    this.#onBell([conversation]);
  }

  /** Has a turn accepted. Where its session is warm it is begun in the same commit, and sent where nothing stands in the way. */
  accept(owner: string, turn: NewTurn): Promise<Enqueued> {
    const enqueue = () => this.#parts.store.enqueue(owner, turn);
    const entry = this.#holds.get(turn.conversation);
    if (entry === undefined || this.#stopping.isClosed) return enqueue();
    if (entry.looking !== null) return entry.looking.then(enqueue);
    if (!this.#warm.has(entry)) return enqueue();
    const { expected, accepted } = expectTurn(entry, owner, turn, enqueue);
    this.#resume(entry, expected);
    return accepted;
  }

  /** Runs a piece of work on a conversation between its turns. Null: another process holds it. */
  async withHold<T>(conversation: string, work: Work<T>): Promise<T | null> {
    await Promise.all(this.#leaving);
    if (this.#stopping.isClosed) throw new ThroughlineError('closed', 'Throughline is closed.');
    const held = this.#holds.get(conversation);
    if (held) held.waiting += 1;
    const claim = held === undefined ? await this.#claims.claim(conversation) : null;
    const entry = held ?? (claim && this.#hold(claim, 1));
    if (entry === null) return null;
    this.#warm.take(entry);
    entry.outlook = null;
    const done = entry.busy.then(() =>
      this.#guard(entry, 'work between turns', () => settle(() => work(entry.hold, this.#stopping.shutdown))),
    );
    entry.busy = done.then(() => this.#afterWork(entry));
    const result = await done;
    if (result !== null && 'error' in result) throw result.error;
    return result?.value ?? null;
  }

  async #afterWork(entry: Entry): Promise<void> {
    entry.waiting -= 1;
    if (this.#holds.get(entry.hold.conversation.id) === entry) await this.#runTurns(entry, null);
  }

  /** Stops claiming, gives running turns `graceMs` to end, interrupts the rest, and gives every lease back. */
  async close(graceMs: number): Promise<void> {
    if (this.#stopping.isClosed) return;
    this.#stopping.isClosed = true;
    this.#stopListening();
    const timer = setTimeout(() => this.#shutdown.abort(), graceMs);
    await Promise.all([this.#looking, this.#claims.close()]);
    await Promise.all([...this.#holds.values()].map((entry) => entry.busy));
    clearTimeout(timer);
    await Promise.all([...this.#holds.values()].map((entry) => this.#letGo(entry)));
    await Promise.all(this.#leaving);
    this.#warm.close();
    this.#keeper.stop();
  }

  #lost({ conversation, epoch }: Fence): void {
    const lease = this.#holds.get(conversation)?.hold.lease;
    if (lease?.fence.epoch === epoch) lease.lose(new ThroughlineError('lease_lost', 'Another worker took over.'));
  }

  #onBell(moved: readonly string[] | null): void {
    for (const id of moved ?? this.#holds.keys()) {
      const entry = this.#holds.get(id);
      if (entry === undefined) continue;
      entry.rung = true;
      if (this.#warm.has(entry)) this.#resume(entry);
    }
    // What happens in conversations that we hold makes no other one claimable.
    if (moved === null || moved.some((id) => !this.#holds.has(id))) this.#claims.wake();
  }

  #hold(claim: Claim, waiting: number): Entry {
    const { store, settings, onTrouble } = this.#parts;
    const lease = new Lease(claim.fence, { store, storageMs: settings.storageMs, onTrouble });
    const hold = new Hold(this.#parts, lease, claim.conversation);
    const entry: Entry = {
      hold,
      busy: Promise.resolve(),
      waiting,
      rung: false,
      last: null,
      outlook: null,
      looking: null,
    };
    this.#holds.set(claim.conversation.id, entry);
    // While it is warm, nothing else would notice: what was erased elsewhere must not live on in a process here.
    lease.lost.addEventListener('abort', () => this.#warm.has(entry) && this.#resume(entry), { once: true });
    entry.busy = this.#runTurns(entry, claim);
    return entry;
  }

  // ── running ──────────────────────────────────────────────────────────────────────────────────────────────────────────

  /** A warm hold looks whether a turn has come. `expected`: one is about to, if it is accepted. */
  #resume(entry: Entry, expected: Expected | null = null): void {
    this.#warm.take(entry);
    entry.busy = entry.busy.then(() => this.#runTurns(entry, null, expected));
  }

  async #runTurns(entry: Entry, claim: Claim | null, expected: Expected | null = null): Promise<void> {
    const alive = await this.#guard(entry, 'running turns', () => this.#turns.run(entry, claim, expected));
    if (!alive || this.#stopping.isClosed || entry.waiting > 0) return;
    if (entry.hold.live.size > 0 && this.#parts.settings.maxWarm > 0 && !alive.toOthers) this.#keepWarm(entry);
    else await this.#letGo(entry);
  }

  /** A turn may have come after we last looked, and its bell rung for a hold that was still busy; or the lease was lost then. */
  #keepWarm(entry: Entry): void {
    this.#warm.keep(entry);
    // Nobody waits for anything just now, and the next turn need not wait for this.
    if (entry.last !== null) entry.outlook ??= lookAhead(entry.hold, entry.last.agent);
    entry.outlook?.catch(() => {}); // told to the turn that asks for it
    if ((entry.rung || entry.hold.lease.lost.aborted) && this.#warm.has(entry)) this.#resume(entry);
    this.#claims.wake(); // one turn less is running: another conversation may have waited for that
  }

  /** Runs work under the lease. When the lease is lost, every process of the hold is ended and nothing more is written. */
  async #guard<T>(entry: Entry, where: string, work: () => Promise<T>): Promise<T | null> {
    try {
      return await work();
    } catch (error) {
      // What made us lose the lease may be a fault of this program as well: the store refuses what cannot be.
      const { lost } = entry.hold.lease;
      const cause = lost.aborted ? lost.reason : error;
      const bug = !isStorageFault(cause);
      if (bug) this.#parts.onBug(cause, where);
      await this.#drop(entry, bug);
      return null;
    }
  }

  // ── letting go ───────────────────────────────────────────────────────────────────────────────────────────────────────

  /** From here on nobody finds it: the conversation is claimed anew, by us or another, once the lease is given back. */
  async #letGo(entry: Entry): Promise<void> {
    const { hold } = entry;
    this.#warm.take(entry);
    this.#forget(entry);
    const leaving = this.#guard(entry, 'letting go', async () => {
      for (const name of [...hold.live.keys()]) {
        const configured = this.#parts.agents.get(name);
        if (configured) await hold.letGo(configured.agent);
      }
      await this.#parts.store.release(hold.lease.fence);
    }).then(() => {});
    this.#leaving.add(leaving);
    await leaving;
    this.#leaving.delete(leaving);
    this.#claims.wake();
  }

  /** After a fault of this program the lease is left to expire: given back, it would be claimed, and fail, again at once. */
  async #drop(entry: Entry, bug: boolean): Promise<void> {
    this.#warm.take(entry);
    this.#forget(entry);
    await entry.hold.abandon();
    if (bug) return;
    await this.#parts.store.release(entry.hold.lease.fence).catch(() => {});
    this.#claims.wake();
  }

  #forget(entry: Entry): void {
    const { id } = entry.hold.conversation;
    if (this.#holds.get(id) === entry) this.#holds.delete(id);
  }
}

/** The signal aborts when this process is about to end. */
type Work<T> = (hold: Hold, shutdown: AbortSignal) => Promise<T>;

/** What the caller is to hear of, apart from what is wrong with the hold itself. */
async function settle<T>(work: () => Promise<T>): Promise<{ value: T } | { error: ThroughlineError }> {
  try {
    return { value: await work() };
  } catch (error) {
    if (error instanceof ThroughlineError && !isStorageFault(error)) return { error };
    if (isAbort(error)) return { error: new ThroughlineError('closed', 'Throughline was closed before it was done.') };
    throw error;
  }
}

function isAbort(error: unknown): boolean {
  return error instanceof Error && error.name === 'AbortError';
}
