import { randomUUID } from 'node:crypto';
import type { Conversation } from '../../core/conversation.ts';
import { isStorageFault, isTransientFault, ThroughlineError } from '../../core/errors.ts';
import { hasEnded, type Turn } from '../../core/turn/turn.ts';
import { ClaimLoop } from '../../leases/claim-loop.ts';
import { Lease } from '../../leases/lease.ts';
import { conversationLeases, freeDead, LeaseKeeper } from '../../leases/lease-keeper.ts';
import type { Claim, ClaimRequest, Fence } from '../../ports/store/leases.ts';
import type { EngineParts } from '../parts.ts';
import type { Changes } from '../reading/changes.ts';
import { endUnsent } from '../turn/end-turn.ts';
import { recover } from '../turn/recover.ts';
import { runTurn } from '../turn/run-turn.ts';
import { Held } from './held.ts';
import { Listing } from './listing.ts';

/*
 * The loop that claims conversations and runs their turns.
 *
 *   wake ──▶ claim ──▶ drive: end what an earlier holder left, run turns in order ──▶ keep warm ──▶ leave
 *
 * While a conversation is held, every turn of it runs here, whoever submitted it; all others follow the stored events. The
 * states of a held conversation are in held.ts.
 */
export class Worker {
  readonly #parts: EngineParts;
  readonly #changes: Changes;
  readonly #listing: Listing;
  readonly #held = new Map<string, Held>();
  /** By conversation: the turns that this process waits for, and whose they are. */
  readonly #wanted = new Map<string, Map<string, { readonly owner: string }>>();
  readonly #claims = new ClaimLoop(() => this.#claimFree());
  readonly #keeper: LeaseKeeper<Fence>;
  readonly #leaving = new Set<Promise<void>>();
  /** By conversation: the end of a turn that an earlier holder left is being recorded. Never rejects. */
  readonly #recovering = new Map<string, Promise<void>>();
  readonly #shutdown = new AbortController();
  /** What this process did not submit itself is not sent any more. */
  readonly #close = new AbortController();
  readonly #stopListening: () => void;
  readonly #firstLook: Promise<unknown>;
  #settling: Promise<void> | null = null;

  constructor(parts: EngineParts, changes: Changes) {
    this.#parts = parts;
    this.#changes = changes;
    this.#listing = new Listing(parts, randomUUID());
    const holder = {
      held: () => [...this.#held.values()].map(({ lease }) => lease.fence),
      lost: (fence: Fence) => this.#lost(fence),
      wake: () => this.#claims.wake(),
      onFault: (error: unknown, where: string) => isStorageFault(error) || parts.onBug(error, where),
    };
    this.#keeper = new LeaseKeeper(conversationLeases(parts.store), holder, parts);
    this.#stopListening = parts.store.listen((moved) => this.#onNotification(moved));
    this.#firstLook = Promise.all([this.#keeper.look(), this.#listing.nameHome()]);
    if (this.takesUp) this.#claims.wake();
  }

  /** Whether this process also runs what others have submitted. */
  get takesUp(): boolean {
    return this.#parts.settings.claims !== 'own';
  }

  get #closing(): boolean {
    return this.#close.signal.aborted;
  }

  /** The owner's conversation, if it is held here: its fixed values are not read from the store again. */
  heldConversation(owner: string, id: string): Conversation | null {
    const conversation = this.#held.get(id)?.conversation;
    return conversation?.owner === owner ? conversation : null;
  }

  /** Aborts when this process is about to end. */
  get shutdown(): AbortSignal {
    return this.#shutdown.signal;
  }

  /** This process waits for a turn: its conversation is claimed when it is free. */
  want(owner: string, conversation: string, turn: string): void {
    const turns = this.#wanted.get(conversation) ?? new Map();
    this.#wanted.set(conversation, turns.set(turn, { owner }));
    this.#onNotification([conversation]);
  }

  /** Whether it holds the conversation, or waits for a turn of it. */
  attends(conversation: string): boolean {
    return this.#held.has(conversation) || this.#wanted.has(conversation);
  }

  /** Whether it is recording the end of a turn that an earlier holder left. */
  isRecovering(conversation: string): boolean {
    return this.#recovering.has(conversation);
  }

  /** Resolves when that is done, or takes long. */
  recovered(conversation: string): Promise<void> {
    return withinLimit(this.#recovering.get(conversation));
  }

  /**
   * Ends what provably dead holders left running, and the turns that they left in the middle. Starts no turn. Rejects with a
   * storage fault.
   */
  settle(): Promise<void> {
    this.#settling ??= this.#settle().finally(() => {
      this.#settling = null;
    });
    return this.#settling;
  }

  /** Runs a piece of work on a conversation between its turns. Null: another process holds it. */
  async withHeld<T>(conversation: string, work: Work<T>): Promise<T | null> {
    await Promise.all(this.#leaving);
    if (this.#closing) throw new ThroughlineError('closed', 'Throughline is closed.');
    const known = this.#held.get(conversation);
    const claim = known === undefined ? await this.#claim({ conversation }) : null;
    const held = known ?? (claim && this.#take(claim));
    if (held === null) return null;
    return new Promise<T | null>((resolve, reject) => {
      const run = async () => {
        try {
          resolve(await work(held, this.#shutdown.signal));
        } catch (error) {
          const refusal = forCaller(error);
          if (refusal !== null) return reject(refusal);
          resolve(null);
          throw error;
        }
      };
      held.errands.push({ run, drop: () => resolve(null) });
      this.#notify(held);
    });
  }

  /** Starts nothing more, gives running turns `graceMs` to end, interrupts the rest, and gives every lease back. */
  async close(graceMs: number): Promise<void> {
    if (this.#closing) return;
    this.#close.abort();
    this.#stopListening();
    const timer = setTimeout(() => this.#shutdown.abort(), graceMs);
    await Promise.all([this.#firstLook, this.#claims.close(), this.#settling?.catch(() => {})]);
    await Promise.all([...this.#held.values()].map(({ busy }) => busy));
    clearTimeout(timer);
    await Promise.all([...this.#held.values()].map((held) => this.#leave(held)));
    await Promise.all(this.#leaving);
    this.#keeper.stop();
    await this.#listing.end();
  }

  // ── claiming ─────────────────────────────────────────────────────────────────────────────────────────────────────────

  /** `moved`: conversations that have changed; null: any may have. */
  #onNotification(moved: readonly string[] | null): void {
    for (const id of moved ?? this.#held.keys()) {
      const held = this.#held.get(id);
      if (held !== undefined) this.#notify(held);
    }
    // A change in a conversation that we hold makes no other one claimable.
    if (moved === null || moved.some((id) => !this.#held.has(id))) this.#claims.wake();
  }

  /** Claims what is free: conversations whose turns this process waits for, and those that it takes up. */
  async #claimFree(): Promise<void> {
    const { claims } = this.#parts.settings;
    // `all` finds its own among all.
    const own = claims === 'all' ? [] : this.#wanted.keys();
    const idleMs = claims === 'left' ? TAKE_UP_MS : 0;
    if (this.takesUp) this.#listing.keep();
    try {
      for (const wanted of [...own, ...(this.takesUp ? [undefined] : [])]) {
        while (await this.#mayClaim(wanted)) {
          const claim = await this.#claim(wanted === undefined ? { idleMs } : { conversation: wanted });
          if (claim !== null) this.#take(claim);
          else if (!(await this.#keeper.freeDead())) break;
        }
      }
    } catch (error) {
      if (!isStorageFault(error)) this.#parts.onBug(error, 'claiming');
      else if (isTransientFault(error)) this.#parts.onTrouble(error);
      // A notification or the heartbeat wakes us again.
    }
  }

  /** `wanted`: a conversation; undefined: any. */
  async #mayClaim(wanted: string | undefined): Promise<boolean> {
    const working = [...this.#held.values()].filter(({ state }) => state.is === 'working');
    if (this.#closing || working.length >= this.#parts.settings.maxRunning) return false;
    return wanted === undefined || (!this.#held.has(wanted) && (await this.#stillWanted(wanted)));
  }

  /** Another process may have run our turns meanwhile. */
  async #stillWanted(conversation: string): Promise<boolean> {
    for (const [id, { owner }] of this.#wanted.get(conversation) ?? []) {
      const turn = await this.#parts.store.findTurn(owner, id);
      if (turn === null || hasEnded(turn.state)) this.#unwant(conversation, id);
    }
    return this.#wanted.has(conversation);
  }

  #unwant(conversation: string, turn: string): void {
    const turns = this.#wanted.get(conversation);
    turns?.delete(turn);
    if (turns?.size === 0) this.#wanted.delete(conversation);
  }

  /** Null: there is none to claim; of one that is named: another process holds it. */
  #claim(which: Pick<ClaimRequest, 'conversation' | 'idleMs' | 'settle'>): Promise<Claim | null> {
    const { store, settings } = this.#parts;
    this.#keeper.start();
    return store.claim({
      ...this.#listing.self(),
      driver: 'worker',
      leaseMs: settings.leaseMs,
      ...which,
      ...(which.conversation === undefined && { held: [...this.#held.keys()] }),
    });
  }

  async #settle(): Promise<void> {
    const { store, processes } = this.#parts;
    await freeDead(conversationLeases(store), processes);
    const settling: Promise<void>[] = [];
    while (!this.#closing) {
      const claim = await this.#claim({ settle: true });
      if (claim === null) break;
      settling.push(this.#take(claim, true).busy);
    }
    await withinLimit(Promise.all(settling));
  }

  /** `settling`: only to end what an earlier holder left; then it is given back. */
  #take(claim: Claim, settling = false): Held {
    const { store, settings, clock, onTrouble } = this.#parts;
    // Whoever only looks does not wait for space on the disk.
    const storageMs = settling ? 0 : settings.storageMs;
    const lease = new Lease(claim.fence, { store, clock, storageMs, onTrouble });
    const held = new Held(this.#parts, lease, claim.conversation, settling);
    this.#held.set(claim.conversation.id, held);
    // A warm conversation would not notice otherwise. What was erased elsewhere must not stay in a process here.
    lease.lost.addEventListener('abort', () => this.#notify(held), { once: true });
    held.busy = this.#drive(held, claim);
    return held;
  }

  /** Found by the heartbeat. It may be ours again by now, under another epoch. */
  #lost({ conversation, epoch }: Fence): void {
    const lease = this.#held.get(conversation)?.lease;
    if (lease?.fence.epoch === epoch) lease.lose(new ThroughlineError('lease_lost', 'Another worker took over.'));
  }

  // ── driving ──────────────────────────────────────────────────────────────────────────────────────────────────────────

  /** A turn may have come, work was added, or the lease was lost. */
  #notify(held: Held): void {
    const wasWarm = held.state.is === 'warm';
    held.happens({ type: 'notified' });
    if (!wasWarm) return;
    clearTimeout(held.idleTimer);
    held.busy = held.busy.then(() => this.#drive(held, null));
  }

  /** Does all that there is to do in a held conversation, then keeps it warm or leaves it. Never rejects. */
  async #drive(held: Held, claim: Claim | null): Promise<void> {
    try {
      if (claim?.unfinished) await this.#recover(held, claim.unfinished);
      for (let turn = claim?.turn ?? null, rested = false; !rested; turn = null) {
        held.lease.lost.throwIfAborted();
        turn ??= await this.#beginNext(held);
        const errand = turn === null ? held.errands.shift() : undefined;
        if (turn !== null) {
          const unsent = this.#wanted.get(turn.conversation)?.has(turn.id) ? null : this.#close.signal;
          const stops = { shutdown: this.#shutdown.signal, unsent };
          await runTurn(held, turn, this.#changes, stops).catch((error) => this.#failTurn(held, turn, error));
          await this.#afterTurn(held, turn);
        } else if (errand !== undefined) await errand.run();
        else rested = await this.#rests(held);
      }
    } catch (error) {
      return this.#drop(held, 'running turns', error);
    }
  }

  /** Null: none is open here, or the rest is left to other processes. */
  async #beginNext(held: Held): Promise<Turn | null> {
    if (this.#closing || held.settling) return null;
    held.happens({ type: 'looked' });
    const { settings, store, agents } = this.#parts;
    // A process that keeps nothing warm runs its conversation up to its own turns.
    if (settings.claims === 'own' && settings.maxWarm === 0 && !this.#wanted.has(held.conversation.id)) return null;
    const turn = await store.begin(held.lease.fence, [...agents.keys()]);
    // Turns have come in between: a session was adopted. Only then does the history grow while we hold it.
    if (turn !== null && turn.n > held.conversation.head + 1) await held.readAgain();
    return turn;
  }

  /** A fault of this program ends the turn as failed: it must not come back for ever. */
  async #failTurn(held: Held, turn: Turn, error: unknown): Promise<void> {
    if (held.lease.lost.aborted || isStorageFault(error)) throw error;
    this.#parts.onBug(error, `turn ${turn.id}`);
    const now = await this.#parts.store.findTurn(held.conversation.owner, turn.id);
    if (now?.sent) await recover(held, now);
    else await endUnsent(held, turn, { code: 'internal', message: 'Throughline failed; its log says why.' }, null);
  }

  /** Followers of the turn read its end first. */
  async #afterTurn(held: Held, turn: Turn): Promise<void> {
    await new Promise(setImmediate);
    this.#unwant(held.conversation.id, turn.id);
  }

  async #recover(held: Held, turn: Turn): Promise<void> {
    const { id } = held.conversation;
    const recovering = recover(held, turn);
    this.#recovering.set(
      id,
      recovering.catch(() => {}),
    );
    await recovering.finally(() => this.#recovering.delete(id));
    this.#unwant(id, turn.id);
  }

  /** Keeps it warm or leaves it. False: something has come meanwhile, and there is more to do. */
  async #rests(held: Held): Promise<boolean> {
    const keep = await this.#isWorthKeeping(held);
    if (held.errands.length > 0) return false;
    const state = held.happens({ type: 'rested', keep, now: this.#parts.clock.monotonic() });
    // At once: a notification after this finds it warm, or does not find it.
    if (state.is === 'warm') this.#keepWarm(held);
    if (state.is === 'gone') await this.#leave(held);
    return state.is !== 'working';
  }

  /** A turn that is open and was not given to us needs an agent that only others know. It must not wait until we are idle. */
  async #isWorthKeeping({ conversation, live }: Held): Promise<boolean> {
    if (live.size === 0 || this.#parts.settings.maxWarm === 0 || this.#closing) return false;
    const summary = await this.#parts.store.summary(conversation.owner, conversation.id).catch((error: unknown) => {
      throw isNotFound(error) ? new ThroughlineError('lease_lost', 'The conversation was erased.') : error;
    });
    return summary.open === 0;
  }

  /** The lease is lost, the storage refuses, or this program has a bug: its processes are ended, and nothing is written. */
  async #drop(held: Held, where: string, error: unknown): Promise<void> {
    // A bug of this program may have lost the lease: the store refuses impossible writes.
    const { lost } = held.lease;
    const cause = lost.aborted ? lost.reason : error;
    const bug = !isStorageFault(cause);
    if (bug) this.#parts.onBug(cause, where);
    this.#forget(held);
    await held.killAll();
    // After a bug the lease is left to expire: given back, it would be claimed, and fail, again at once.
    if (bug) return;
    await this.#parts.store.release(held.lease.fence).catch(() => {});
    this.#claims.wake();
  }

  // ── resting ──────────────────────────────────────────────────────────────────────────────────────────────────────────

  /** At most `maxWarm` are kept, the least recently used leaves first, and each is kept for at most `idleMs`. */
  #keepWarm(held: Held): void {
    const { maxWarm, idleMs } = this.#parts.settings;
    held.idleTimer = setTimeout(() => void this.#leave(held), idleMs).unref();
    const warm = [...this.#held.values()].flatMap((one) => (one.state.is === 'warm' ? [{ one, ...one.state }] : []));
    const tooMany = warm.toSorted((a, b) => a.since - b.since).slice(0, Math.max(0, warm.length - maxWarm));
    for (const { one } of tooMany) void this.#leave(one);
    this.#claims.wake(); // one turn less is running: another conversation may have waited for that
  }

  /** Ends its agents' processes and gives the lease back: then the conversation is claimed anew, by us or another. */
  async #leave(held: Held): Promise<void> {
    this.#forget(held);
    const leaving = this.#release(held).catch((error) => this.#drop(held, 'leaving a conversation', error));
    this.#leaving.add(leaving);
    await leaving;
    this.#leaving.delete(leaving);
    this.#claims.wake();
  }

  async #release(held: Held): Promise<void> {
    for (const name of [...held.live.keys()]) {
      const configured = this.#parts.agents.get(name);
      if (configured) await held.endLive(configured.agent);
    }
    await this.#parts.store.release(held.lease.fence);
  }

  /** From here on nobody finds it. */
  #forget(held: Held): void {
    const { id } = held.conversation;
    clearTimeout(held.idleTimer);
    held.happens({ type: 'left' });
    for (const errand of held.errands.splice(0)) errand.drop();
    if (this.#held.get(id) === held) this.#held.delete(id);
  }
}

/** `claims: left`: how long a turn of another process may wait before this one takes it up. */
const TAKE_UP_MS = 1_000;
/** How long somebody who looks waits for the end of turns that dead processes left. */
const SETTLE_MS = 10_000;

/** A piece of work on a held conversation. The signal aborts when this process is about to end. */
type Work<T> = (held: Held, shutdown: AbortSignal) => Promise<T>;

/** Reading an agent's storage may take long. Whoever looks is then told that the turn has not ended. */
async function withinLimit(work: Promise<unknown> | undefined): Promise<void> {
  const late = new Promise<void>((resolve) => setTimeout(resolve, SETTLE_MS).unref());
  if (work !== undefined) await Promise.race([work, late]);
}

/** What the caller of a piece of work is told; null: it is a fault of the storage, of the lease, or of this program. */
function forCaller(error: unknown): ThroughlineError | null {
  if (error instanceof ThroughlineError && !isStorageFault(error)) return error;
  const stopped = error instanceof Error && error.name === 'AbortError';
  return stopped ? new ThroughlineError('closed', 'Throughline was closed before the work was done.') : null;
}

function isNotFound(error: unknown): boolean {
  return error instanceof ThroughlineError && error.code === 'not_found';
}
