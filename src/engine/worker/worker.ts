import { randomUUID } from 'node:crypto';
import type { Conversation } from '../../core/conversation.ts';
import {
  type Failure,
  failureOf,
  hasCode,
  isDamage,
  isStorageFault,
  isTransientFault,
  ThroughlineError,
} from '../../core/errors.ts';
import { type Delayed, leavesFirst } from '../../core/limits/slots.ts';
import type { Standing } from '../../core/turn/standing.ts';
import type { Turn } from '../../core/turn/turn.ts';
import { ClaimLoop } from '../../leases/claim-loop.ts';
import { Lease } from '../../leases/lease.ts';
import { conversationLeases, freeDead, LeaseKeeper } from '../../leases/lease-keeper.ts';
import type { AgentSession } from '../../ports/agent.ts';
import type { Claim, Fence, TurnToRun, WorkerInfo } from '../../ports/store/leases.ts';
import { finishErasures } from '../intake/erase.ts';
import type { EngineParts } from '../parts.ts';
import { endUnsent } from '../turn/end-turn.ts';
import { recover } from '../turn/recover.ts';
import { runTurn } from '../turn/run-turn.ts';
import { type Begun, Held } from './held.ts';
import { Listing } from './listing.ts';
import { Serving } from './serving.ts';
import type { Slot } from './slots.ts';

/*
 * The loop that claims conversations and runs their turns.
 *
 *   wake ──▶ claim ──▶ drive: end what an earlier holder left, run turns in order ──▶ keep warm ──▶ leave
 *
 * While a conversation is held, every turn of it runs here, whoever submitted it; all others follow the stored events. The
 * states of a held conversation are in held.ts. Every turn needs a slot, and gives it back at its end: whose turn is next is then
 * decided between all owners (serving.ts).
 */
export class Worker {
  /** As leases name it. */
  readonly self: WorkerInfo;
  readonly #parts: EngineParts;
  readonly #listing: Listing;
  readonly #held = new Map<string, Held>();
  readonly #loop: ClaimLoop;
  readonly #serving: Serving;
  readonly #keeper: LeaseKeeper<Fence>;
  readonly #leaving = new Map<Held, Promise<void>>();
  /** By conversation: the end of a turn that an earlier holder left is being recorded. Never rejects. */
  readonly #recovering = new Map<string, Promise<void>>();
  readonly #shutdown = new AbortController();
  /** Aborts at the beginning of `close`: turns of other processes are not sent any more. */
  readonly #close = new AbortController();
  readonly #stopListening: () => void;
  readonly #firstLook: Promise<unknown>;
  #endingLeft: Promise<void> | null = null;

  constructor(parts: EngineParts) {
    this.#parts = parts;
    this.self = namedWhenUsed(parts.processes.self());
    this.#listing = new Listing(parts, this.self);
    this.#loop = new ClaimLoop(this.#serve);
    const leases = {
      held: () => [...this.#held.values()].map(({ lease }) => lease.fence),
      lost: (fence: Fence) => this.#lost(fence),
      wake: () => this.#look(),
      onFault: (error: unknown, where: string) => isStorageFault(error) || parts.onBug(error, where),
    };
    this.#keeper = new LeaseKeeper(conversationLeases(parts.store), leases, parts);
    const onFree = () => this.#loop.wake();
    this.#serving = new Serving(parts, { self: this.self, held: this.#held, keeper: this.#keeper, onFree });
    this.#stopListening = parts.store.listen(this.#onNotification);
    // In the next turn of the event loop: a command starts the program of its agent in this one.
    const beganAt = parts.clock.now();
    const look = async () => {
      // First, because a program that a killed process has left may work in a sandbox that is deleted next.
      await Promise.all([this.#keeper.look(), this.#listing.nameHome()]);
      if (parts.onlyReads !== true) await this.#finishErasures(beganAt);
    };
    this.#firstLook = new Promise(setImmediate).then(look);
    if (this.takesUp) this.#look();
  }

  /** Whether this process also runs what others have submitted. */
  get takesUp(): boolean {
    return this.#serving.takesUp;
  }

  get #closing(): boolean {
    return this.#close.signal.aborted;
  }

  /** The owner's conversation, if it is held here: its fixed values are not read from the store again. */
  heldConversation(owner: string, id: string): Conversation | null {
    const conversation = this.#held.get(id)?.conversation;
    return conversation?.owner === owner ? conversation : null;
  }

  /** The living session of an agent in a conversation that is held here; null: there is none. */
  living(conversation: string, agent: string): AgentSession | null {
    return this.#held.get(conversation)?.living(agent)?.session ?? null;
  }

  /** Aborts when this process is about to end. */
  get shutdown(): AbortSignal {
    return this.#shutdown.signal;
  }

  /** This process waits for a turn: its conversation is claimed when it is free. */
  want(owner: string, conversation: string, turn: string): void {
    this.#serving.wanted.add(owner, conversation, turn);
    this.#held.get(conversation)?.apply({ type: 'wanted' });
    this.#onNotification([conversation]);
  }

  /** Whether it holds the conversation, or waits for a turn of it. */
  attends({ owner, conversation }: Pick<Standing, 'owner' | 'conversation'>): boolean {
    return this.#held.has(conversation) || this.#serving.wanted.has(owner, conversation);
  }

  holds(conversation: string): boolean {
    return this.#held.has(conversation);
  }

  /** Why an open turn that this process can run has not begun; null: it has begun, will begin soon, or others run it. */
  whyDelayed(standing: Standing): Delayed | null {
    return this.#serving.whyDelayed(standing);
  }

  /** Throws for a conversation whose turns do not run, because what is stored of it is damaged. */
  checkRuns(conversation: string): void {
    const why = this.#serving.aside.why(conversation);
    if (why !== null) throw why;
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
  endLeft(): Promise<void> {
    this.#endingLeft ??= this.#endAllLeft().finally(() => {
      this.#endingLeft = null;
    });
    return this.#endingLeft;
  }

  /** Runs a piece of work on a conversation between its turns. Null: another process holds it, or no slot is free. */
  async withHeld<T>(conversation: string, work: Work<T>): Promise<T | null> {
    await Promise.all(this.#leaving.values());
    if (this.#closing) throw new ThroughlineError('closed', 'Throughline is closed.');
    const known = this.#held.get(conversation);
    const claim = known === undefined ? await this.#serving.claim({ conversation, withoutTurn: true }) : null;
    const held = known ?? (claim && this.#take(claim, null));
    return held && this.#betweenTurns(held, work);
  }

  /**
   * Interrupts the turn that runs in a conversation that is held here, if one does, and then runs the work. Null: another process
   * holds it or nobody does, or no slot is free.
   */
  async whileHeld<T>(conversation: string, work: Work<T>, why: Failure): Promise<T | null> {
    const held = this.#held.get(conversation);
    if (held === undefined) return null;
    // Given before the turn is stopped: another one waits, and must not begin first.
    const done = this.#betweenTurns(held, work);
    held.stopTurn(why);
    return done;
  }

  /** Before the next turn, if one waits. Null: no slot is free. */
  #betweenTurns<T>(held: Held, work: Work<T>): Promise<T | null> {
    return new Promise<T | null>((resolve, reject) => {
      const run = async () => {
        try {
          resolve(await work(held, this.#shutdown.signal));
        } catch (error) {
          const refusal = forCaller(error);
          if (refusal !== null) return reject(refusal);
          if (isDamage(error)) reject(error);
          else resolve(null);
          throw error;
        }
      };
      held.addErrand({ run, drop: () => resolve(null) });
      this.#notify(held);
    });
  }

  /** Starts nothing more, gives running turns `graceMs` to end, interrupts the rest, and gives every lease back. */
  async close(graceMs: number): Promise<void> {
    if (this.#closing) return;
    this.#close.abort();
    this.#stopListening();
    const timer = setTimeout(() => this.#shutdown.abort(), graceMs);
    this.#serving.stop();
    await Promise.all([this.#firstLook, this.#loop.close(), this.#endingLeft?.catch(() => {})]);
    await Promise.all([...this.#held.values()].map(({ driven }) => driven));
    clearTimeout(timer);
    for (const { lease } of [...this.#held.values(), ...this.#leaving.keys()]) lease.hurry();
    await Promise.all([...this.#held.values()].map((held) => this.#leave(held)));
    await Promise.all(this.#leaving.values());
    this.#keeper.stop();
    await this.#listing.end();
  }

  // ── claiming ─────────────────────────────────────────────────────────────────────────────────────────────────────────

  /** `moved`: conversations that have changed; null: any may have. `own`: those of them that only their holder has written. */
  readonly #onNotification = (moved: readonly string[] | null, own?: ReadonlySet<string>): void => {
    if (moved === null) this.#notifyAll();
    for (const id of moved ?? []) {
      const held = this.#held.get(id);
      if (held !== undefined && !own?.has(id)) this.#notify(held);
    }
    // A change in a conversation that we hold makes no other one claimable.
    if (moved === null || moved.some((id) => !this.#held.has(id))) this.#loop.wake();
  };

  /** Any may have changed. Of those that are warm there may be many: only what has an open turn is woken, and takes a slot. */
  #notifyAll(): void {
    const all = [...this.#held.values()];
    for (const held of all) if (held.state.is !== 'warm') this.#notify(held);
    const warm = all.filter(({ state }) => state.is === 'warm' && !state.due).map(({ conversation }) => conversation);
    for (const [owner, own] of Map.groupBy(warm, (conversation) => conversation.owner)) {
      const ids = own.map(({ id }) => id);
      // It cannot be read: the next notification, or the heartbeat, looks again.
      void this.#parts.store.standings(owner, ids).then(
        (open) => {
          for (const { conversation } of open) {
            const held = this.#held.get(conversation);
            if (held !== undefined) this.#notify(held);
          }
        },
        (error: unknown) => isStorageFault(error) || this.#parts.onBug(error, 'looking for open turns'),
      );
    }
  }

  /** `before`: when this process began. Later erasures are its own, or of processes that live. Never rejects. */
  async #finishErasures(before: number): Promise<void> {
    const { store, sandboxes, onBug } = this.#parts;
    try {
      const left = await store.unfinishedErasures(sandboxes.place, before);
      // Its code is loaded only if there are any (scripts/bundle.js).
      if (left.length > 0) await finishErasures(this.#parts, left);
    } catch (error) {
      if (!isStorageFault(error)) onBug(error, 'deleting the sandboxes of erased conversations');
    }
  }

  /** Called by the heartbeat: a notification may have been lost. */
  #look(): void {
    if (this.takesUp && !this.#closing) this.#listing.keep();
    this.#loop.wake();
  }

  /** Gives the free slots away and begins what got one. Never rejects. */
  readonly #serve = async (): Promise<void> => {
    try {
      for await (const served of this.#serving.inTurn()) {
        if ('claim' in served) this.#take(served.claim, served.slot);
        else this.#notify(served.held);
      }
    } catch (error) {
      if (!isStorageFault(error)) this.#parts.onBug(error, 'claiming');
      else if (isTransientFault(error) || isDamage(error)) this.#parts.onTrouble(error);
      // A notification or the heartbeat wakes us again.
    }
  };

  async #endAllLeft(): Promise<void> {
    const { store } = this.#parts;
    await freeDead(conversationLeases(store), this.#parts);
    const ending: Promise<void>[] = [];
    while (!this.#closing) {
      const claim = await this.#serving.claim({ withoutTurn: true });
      if (claim === null) break;
      ending.push(this.#take(claim, null, true).driven);
    }
    await withinLimit(Promise.all(ending));
  }

  /** `slot`: for its turns. `onlyRecovers`: only to end what an earlier holder left; then it is given back. */
  #take(claim: Claim, slot: Slot | null, onlyRecovers = false): Held {
    const { store, settings, clock, onTrouble } = this.#parts;
    // A command that only reads does not wait until the disk has space.
    const storageMs = onlyRecovers ? 0 : settings.storageMs;
    const lease = new Lease(claim.fence, { store, clock, storageMs, onTrouble });
    const onIdle = () => void this.#leave(held);
    const held: Held = new Held(this.#parts, lease, claim, { worker: this.self, onlyRecovers, slot, onIdle });
    this.#held.set(claim.conversation.id, held);
    // Otherwise a warm conversation would not notice, and the agent of an erased one would keep its data in memory.
    lease.lost.addEventListener('abort', () => this.#notify(held), { once: true });
    held.drivenUntil(this.#drive(held, claim));
    return held;
  }

  /** Found by the heartbeat. It may be ours again by now, under another epoch. */
  #lost({ conversation, epoch }: Fence): void {
    const lease = this.#held.get(conversation)?.lease;
    if (lease?.fence.epoch === epoch) {
      lease.lose(new ThroughlineError('lease_lost', 'Another worker took over, or may have meanwhile.'));
    }
  }

  // ── driving ──────────────────────────────────────────────────────────────────────────────────────────────────────────

  /** A turn may have come, work was added, or the lease was lost. */
  #notify(held: Held): void {
    const wasWarm = held.state.is === 'warm';
    held.apply({ type: 'notified' });
    if (!wasWarm) return;
    // The caller that submitted the turn gets its answer first, because the commit that begins the turn blocks this process for a moment.
    const answered = () => new Promise<void>(process.nextTick);
    held.drivenUntil(held.driven.then(answered).then(() => this.#drive(held, null)));
  }

  /** Does all that there is to do in a held conversation, then keeps it warm or leaves it. Never rejects. */
  async #drive(held: Held, claim: Claim | null): Promise<void> {
    try {
      if (claim?.unfinished) await this.#recover(held, claim.unfinished);
      for (let next = turnIn(claim), rested = false; !rested; next = null) {
        held.lease.lost.throwIfAborted();
        // An errand comes before the next turn; one that came while a turn was looked for, before the rest.
        let errand = next === null ? this.#nextErrand(held) : undefined;
        const { hasNoTurn, hasTurn } = held;
        if (errand === undefined && !hasNoTurn) next ??= await this.#nextTurn(held);
        if (next === null) errand ??= this.#nextErrand(held);
        if (errand !== undefined) await errand.run();
        else if (next !== null) await this.#run(held, next);
        else rested = await this.#rests(held, { hasNoTurn, hasTurn });
        // The next turn gets the same slot, or another one's turn does.
        if (!rested) held.freeSlot();
      }
      this.#serving.aside.remove(held.conversation.id);
    } catch (error) {
      return this.#drop(held, 'running turns', error);
    }
  }

  async #run(held: Held, next: TurnToRun): Promise<void> {
    const { turn } = next;
    const { owner, id } = held.conversation;
    const { maxWarm } = this.#parts.settings;
    const wanted = this.#serving.wanted.turns(owner, id);
    const unsent = wanted.has(turn.id) ? null : this.#close.signal;
    const begun = held.begin(next, maxWarm === 0 && wanted.has(turn.id) && wanted.size === 1);
    const stops = { shutdown: this.#shutdown.signal, unsent };
    await runTurn(held, begun, stops).catch((error) => this.#failTurn(held, begun, error));
    // Followers of the turn read its end first. Not where the agent is ended at once: they read it while its process ends.
    if (maxWarm > 0) await new Promise(setImmediate);
    this.#serving.wanted.remove(owner, id, turn.id);
  }

  /** Null: none is open here, there is no slot for it, or the rest is left to other processes. */
  async #nextTurn(held: Held): Promise<TurnToRun | null> {
    held.apply({ type: 'looked' });
    if (this.#closing || held.onlyRecovers) return null;
    if (!held.takeSlot(this.#serving.slots)) return null;
    const { settings, store, agents } = this.#parts;
    // A process that keeps nothing warm runs its conversation up to its own turns.
    if (settings.claims === 'own' && settings.maxWarm === 0 && !this.#isWanted(held)) return null;
    // This turn came after its agent was told to end: it is not given a session that is about to close.
    if (held.live.values().some(({ isEnding }) => isEnding)) await this.#endAgents(held);
    const next = await store.nextTurn(held.lease.fence, [...agents.keys()]);
    if (next === null) return null;
    // Turns have come in between: a session was adopted. Only then does the history grow while we hold it.
    if (next.turn.n > held.conversation.head + 1) await held.readAgain();
    return next;
  }

  /** Undefined: there is none, or no slot for it. */
  #nextErrand(held: Held): ReturnType<Held['nextErrand']> {
    return held.hasErrands && held.takeSlot(this.#serving.slots) ? held.nextErrand() : undefined;
  }

  /** A fault of this program, or damage to what is stored, ends the turn as failed: it must not come back for ever. */
  async #failTurn(held: Held, { turn, takenAway }: Begun, error: unknown): Promise<void> {
    const damaged = isDamage(error);
    if (held.lease.lost.aborted || (isStorageFault(error) && !damaged)) throw error;
    const wasTakenAway = await takenAway;
    if (!damaged && !(wasTakenAway && hasCode(error, 'conflict'))) this.#parts.onBug(error, `turn ${turn.id}`);
    // A turn that replaced it may be open, and its notification may be lost.
    if (wasTakenAway) return void held.apply({ type: 'notified' });
    const now = await this.#parts.store.findTurn(held.conversation.owner, turn.id);
    const bug: Failure = { code: 'internal', message: 'Throughline failed; its log says why.' };
    if (now?.sent) await recover(held, now);
    else await endUnsent(held, turn, damaged ? failureOf(error) : bug, null);
  }

  #isWanted({ conversation: { owner, id } }: Held): boolean {
    return this.#serving.wanted.has(owner, id);
  }

  async #recover(held: Held, turn: Turn): Promise<void> {
    const { owner, id } = held.conversation;
    const recovering = recover(held, turn);
    this.#recovering.set(
      id,
      recovering.catch(() => {}),
    );
    await recovering.finally(() => this.#recovering.delete(id));
    this.#serving.wanted.remove(owner, id, turn.id);
  }

  /** Keeps it warm or leaves it. False: something has come meanwhile, and there is more to do. */
  async #rests(held: Held, known: Pick<Held, 'hasNoTurn' | 'hasTurn'>): Promise<boolean> {
    const noSlot = held.slot === null;
    // A piece of work does not wait for a slot: turns come first.
    if (noSlot) held.dropErrands();
    held.freeSlot();
    const keep = await this.#keepAs(held, { noSlot, ...known });
    if (keep === 'more') held.apply({ type: 'notified' });
    if (keep === 'more' || held.hasErrands) return false;
    const state = held.apply({ type: 'rested', keep, now: this.#parts.clock.monotonic() });
    // At once: a notification after this finds it warm, or does not find it.
    if (state.is === 'warm') this.#keepWarm(held);
    if (state.is === 'gone') await this.#leave(held);
    return state.is !== 'working';
  }

  /**
   * A turn that is open and was not given to us needs an agent that only others know, or a slot: it must not wait until we are
   * idle. Otherwise another process has submitted it since we looked, and its notification is still on the way: `more`.
   */
  async #keepAs(
    { conversation, live }: Held,
    { noSlot, hasNoTurn, hasTurn }: { noSlot: boolean } & Pick<Held, 'hasNoTurn' | 'hasTurn'>,
  ): Promise<false | 'idle' | 'due' | 'more'> {
    const { settings, store, agents } = this.#parts;
    const { owner, id } = conversation;
    if (live.size === 0 || settings.maxWarm === 0 || this.#closing) return false;
    if (hasNoTurn) return 'idle';
    if (noSlot && hasTurn) return 'due';
    const [standing] = await store.standings(owner, [id]);
    if (standing !== undefined && !agents.has(standing.turn.agent)) return false;
    if (standing !== undefined) return noSlot ? 'due' : 'more';
    const { open } = await store.summary(owner, id).catch((error: unknown) => {
      throw hasCode(error, 'not_found') ? new ThroughlineError('lease_lost', 'The conversation was erased.') : error;
    });
    return open === 0 ? 'idle' : 'more';
  }

  /** The lease is lost, the storage refuses, or this program has a bug: its processes are ended, and nothing is written. */
  async #drop(held: Held, where: string, error: unknown): Promise<void> {
    // A bug of this program may have lost the lease: the store refuses impossible writes.
    const { lost } = held.lease;
    const cause = lost.aborted ? lost.reason : error;
    const bug = !isStorageFault(cause);
    if (bug) this.#parts.onBug(cause, where);
    if (isDamage(cause)) this.#serving.aside.add(held.conversation.id, cause);
    this.#forget(held);
    await held.killAll();
    // After a bug the lease is left to expire: given back, it would be claimed, and fail, again at once.
    if (bug) return;
    await this.#parts.store.release(held.lease.fence).catch(() => {});
    this.#loop.wake();
  }

  // ── resting ──────────────────────────────────────────────────────────────────────────────────────────────────────────

  /** At most `maxWarm` are kept, those of an owner who has many leave first, and each is kept for at most `idleMs`. */
  #keepWarm(held: Held): void {
    const { maxWarm } = this.#parts.settings;
    // It became due after the slots were last given away.
    if (held.isDue) this.#loop.wake();
    if (this.#held.size <= maxWarm) return;
    const warm = [...this.#held.values()].flatMap((one) =>
      one.state.is === 'warm' ? [{ one, owner: one.conversation.owner, since: one.state.since }] : [],
    );
    for (const { one } of leavesFirst(warm, maxWarm)) void this.#leave(one);
  }

  /** Ends its agents' processes and gives the lease back: then the conversation is claimed again, by us or another. */
  async #leave(held: Held): Promise<void> {
    this.#forget(held);
    const leaving = this.#release(held).catch((error) => this.#drop(held, 'leaving a conversation', error));
    this.#leaving.set(held, leaving);
    await leaving;
    this.#leaving.delete(held);
    this.#loop.wake();
  }

  async #release(held: Held): Promise<void> {
    await this.#endAgents(held);
    await held.lease.drained();
    await this.#parts.store.release(held.lease.fence);
  }

  async #endAgents(held: Held): Promise<void> {
    for (const name of [...held.live.keys()]) {
      const configured = this.#parts.agents.get(name);
      if (configured) await held.endLive(configured.agent);
    }
  }

  /** It is no longer held. */
  #forget(held: Held): void {
    const { id } = held.conversation;
    held.apply({ type: 'left' });
    if (this.#held.get(id) === held) this.#held.delete(id);
  }
}

/** The id is made when it is first used: a command starts its agent before it loads node:crypto. */
function namedWhenUsed(process: WorkerInfo['process']): WorkerInfo {
  let id: string | null = null;
  return {
    get id() {
      id ??= randomUUID();
      return id;
    },
    process,
  };
}

function turnIn(claim: Claim | null): TurnToRun | null {
  return claim?.turn && claim.facts ? { turn: claim.turn, facts: claim.facts } : null;
}

/** How long a reader waits until the turns that dead processes left are ended. */
const ENDING_MS = 10_000;

/** A piece of work on a held conversation. The signal aborts when this process is about to end. */
type Work<T> = (held: Held, shutdown: AbortSignal) => Promise<T>;

/** Reading an agent's storage may take long. After this time, readers see the turn as not ended. */
async function withinLimit(work: Promise<unknown> | undefined): Promise<void> {
  const late = new Promise<void>((resolve) => setTimeout(resolve, ENDING_MS).unref());
  if (work !== undefined) await Promise.race([work, late]);
}

/** What the caller of a piece of work is told; null: it is a fault of the storage, of the lease, or of this program. */
function forCaller(error: unknown): ThroughlineError | null {
  if (error instanceof ThroughlineError && !isStorageFault(error)) return error;
  const stopped = error instanceof Error && error.name === 'AbortError';
  return stopped ? new ThroughlineError('closed', 'Throughline was closed before the work was done.') : null;
}
