import type { Conversation } from '../../core/conversation.ts';
import { type Failure, hasCode } from '../../core/errors.ts';
import { BudgetWatch } from '../../core/limits/budget-watch.ts';
import type { UnknownPart } from '../../core/restore/adopted.ts';
import type { Receipt } from '../../core/restore/receipt.ts';
import { aside, type Session, type SessionState, stateWithoutProcess } from '../../core/restore/session.ts';
import { canReopen } from '../../core/restore/traits.ts';
import { isWorktree } from '../../core/sandbox/sandbox-id.ts';
import { begun } from '../../core/turn/turn.ts';
import type { Lease } from '../../leases/lease.ts';
import type { Agent, AgentSession } from '../../ports/agent.ts';
import type { OpenSandbox } from '../../ports/sandbox.ts';
import type { Claim, TurnToRun, WorkerInfo } from '../../ports/store/leases.ts';
import type { SessionChange } from '../../ports/store/sessions.ts';
import type { EngineParts } from '../parts.ts';
import { readySandbox } from '../sandboxes/ready.ts';
import type { Slot, Slots } from './slots.ts';

/*
 * What a worker knows of a conversation whose lease it holds.
 *
 *                ┌── the turn has ended ── running
 *                ▼                           ▲
 *   claim ──▶ working ── a turn begins ──────┘
 *               │  ▲
 *               │  └── notified: a turn may have come, or the lease was lost; or it was due, and got a slot ──┐
 *               ├── nothing left to do ──▶ warm ───────────────────────────────────────────────────────────────┘
 *               │                            │ idle for too long, or others need its place
 *               ▼                            ▼
 *             gone                         gone: given back or lost, and no longer held
 *
 * Beside its state it has what every state needs: the lease, the sandbox and the sessions that are open in it, the slot (only while there
 * is work, or once it is due), and the errands that wait until no turn runs. Only the methods below change these. Once it is gone, it has
 * neither a slot nor errands.
 *
 * A notification is kept until the worker looks for a turn: it looks once more before the conversation rests. A warm conversation with
 * an open turn, for which there was no slot, is due.
 */
export type HeldState =
  | { readonly is: 'working'; readonly notified: boolean }
  | { readonly is: 'running'; readonly notified: boolean; readonly run: Run }
  | { readonly is: 'warm'; readonly since: number; readonly due: boolean }
  | { readonly is: 'gone' };

export type HeldEvent =
  | { readonly type: 'notified' }
  /** It looks for its next turn now: earlier notifications are answered by that. */
  | { readonly type: 'looked' }
  | { readonly type: 'began'; readonly run: Run }
  /** This process waits for another turn of it. */
  | { readonly type: 'wanted' }
  | { readonly type: 'ended' }
  /** There is nothing left to do. `keep`: its sessions stay open, and if it is `due`, it waits for a slot. */
  | { readonly type: 'rested'; readonly keep: false | 'idle' | 'due'; readonly now: number }
  | { readonly type: 'left' };

/** A turn that begins here. */
export interface Begun extends TurnToRun {
  /** Whether the turn was cancelled or replaced just before it began. Resolves when its begin was stored or refused. */
  readonly takenAway: Promise<boolean>;
  /** Its agent ends with it, because this process waits for no other turn of the conversation. */
  readonly isLast: boolean;
}

/** The turn that runs. */
interface Run extends Begun {
  /** Stops the turn, and passes notifications on to it. */
  readonly signal: { stopFor(why: Failure): void; lookAgain(): void };
  /** How many writes the lease had been given when the turn began. */
  readonly given: number;
}

const NOTIFIED: HeldState = { is: 'working', notified: true };

export function nextState(state: HeldState, event: HeldEvent): HeldState {
  if (state.is === 'gone' || event.type === 'left') return { is: 'gone' };
  switch (event.type) {
    case 'notified':
      return state.is === 'running' ? { ...state, notified: true } : NOTIFIED;
    case 'looked':
      return { is: 'working', notified: false };
    case 'began':
      return { is: 'running', notified: state.is === 'working' && state.notified, run: event.run };
    case 'wanted':
      return state.is === 'running' ? { ...state, run: { ...state.run, isLast: false } } : state;
    case 'ended':
      return state.is === 'running' ? { is: 'working', notified: state.notified } : state;
    case 'rested':
      if (state.is !== 'working' || state.notified) return state;
      return event.keep ? { is: 'warm', since: event.now, due: event.keep === 'due' } : { is: 'gone' };
  }
}

/** A conversation that this process holds: its state, and with it the lease, the open sandbox, and the sessions kept alive in it. */
export class Held {
  readonly parts: EngineParts;
  readonly lease: Lease;
  /** The worker that holds it. */
  readonly worker: WorkerInfo;
  /** It is held only to end what an earlier holder left. */
  readonly onlyRecovers: boolean;
  /** As of the last turn that ended here. Nobody else adds to its history while the lease is held, unless no turn is open. */
  #conversation: Conversation;
  /** By agent: at most one living session each. */
  readonly #live = new Map<string, LiveSession>();
  /** Resolves when nothing is being done with it. Never rejects. */
  #driven: Promise<void> = Promise.resolve();
  readonly #errands: Errand[] = [];
  #slot: Slot | null;
  /** Notified, because changes before it was held were reported to nobody. */
  #state: HeldState = NOTIFIED;
  readonly #onIdle: () => void;
  #idleTimer: NodeJS.Timeout | undefined;
  readonly #watches = new Map<string, BudgetWatch>();
  #sandbox: Promise<OpenSandbox> | null = null;
  /** Where it was moved from since its last turn; null: it was not. */
  readonly #movedFrom: string | null;
  /** The first turn since then; null: none yet. */
  #firstTurn: number | null = null;

  constructor(
    parts: EngineParts,
    lease: Lease,
    { conversation, movedFrom }: Pick<Claim, 'conversation' | 'movedFrom'>,
    by: {
      worker: WorkerInfo;
      onlyRecovers: boolean;
      slot: Slot | null;
      /** Called when it has been warm for too long without being used. */
      onIdle: () => void;
    },
  ) {
    this.parts = parts;
    this.lease = lease;
    this.worker = by.worker;
    this.#conversation = conversation;
    this.onlyRecovers = by.onlyRecovers;
    this.#slot = by.slot;
    this.#onIdle = by.onIdle;
    this.#movedFrom = movedFrom;
  }

  get conversation(): Conversation {
    return this.#conversation;
  }

  /** A turn has ended here, and belongs to the history. */
  historyGrewTo(n: number): void {
    const { historyCount } = this.#conversation;
    this.#conversation = { ...this.#conversation, head: n, historyCount: historyCount + 1 };
  }

  /** What the receipts of the first turn after a move say, and of warm-ups before it. */
  filesLeftBefore(turn: number | null): Pick<Receipt, 'filesLeft'> {
    if (this.#firstTurn !== null && this.#firstTurn !== turn) return {};
    this.#firstTurn = turn;
    return this.#movedFrom === null ? {} : { filesLeft: this.#movedFrom };
  }

  get state(): HeldState {
    return this.#state;
  }

  /** Something has changed since it last looked for a turn. */
  get wasNotified(): boolean {
    return (this.#state.is === 'working' || this.#state.is === 'running') && this.#state.notified;
  }

  /** The last commit found no open turn, and nobody has reported a change since: there is nothing to look for. */
  get hasNoTurn(): boolean {
    return this.lease.openTurns === 0 && !this.wasNotified;
  }

  /** The last commit found an open turn for an agent of this process, and nobody has reported a change since. */
  get hasTurn(): boolean {
    const { nextAgent } = this.lease;
    return nextAgent !== null && this.parts.agents.has(nextAgent) && !this.wasNotified;
  }

  get isDue(): boolean {
    return this.#state.is === 'warm' && this.#state.due;
  }

  apply(event: HeldEvent): HeldState {
    const before = this.#state;
    this.#state = nextState(before, event);
    if (this.#state === before) return before;
    clearTimeout(this.#idleTimer);
    // One that is due is not idle.
    if (this.#state.is === 'warm' && !this.#state.due) {
      this.#idleTimer = setTimeout(this.#onIdle, this.parts.settings.idleMs).unref();
    }
    if (event.type === 'notified') this.#run?.signal.lookAgain();
    if (this.#state.is === 'gone') {
      this.freeSlot();
      this.dropErrands();
    }
    return this.#state;
  }

  /** The turn that runs; null: none does. */
  get #run(): Run | null {
    return this.#state.is === 'running' ? this.#state.run : null;
  }

  /** Begins a turn. This is stored in the same commit as the next write of the turn: in a live session, that is `turn.sent`. */
  begin({ turn, facts }: TurnToRun, isLast: boolean): Begun {
    if (turn.state !== 'queued') return { turn, facts, isLast, takenAway: Promise.resolve(false) };
    const takenAway = this.lease.note({ write: 'begin', turn: turn.id }).then(
      () => false,
      (error) => hasCode(error, 'conflict'),
    );
    return { turn: begun(turn, this.parts.clock.now()), facts, isLast, takenAway };
  }

  /** From now on the turn runs, until it has `ended`. */
  runs(turn: Begun, signal: Run['signal']): void {
    this.apply({ type: 'began', run: { ...turn, signal, given: this.lease.given } });
  }

  /** Interrupts the turn that runs, if one does. */
  stopTurn(why: Failure): void {
    this.#run?.signal.stopFor(why);
  }

  /** True: the caller has to end the agent's session, because this is the last turn here. The session is not used for another one. */
  endsWithTurn(agent: string): boolean {
    if (!this.#run?.isLast) return false;
    const live = this.#live.get(agent);
    if (live !== undefined) this.#live.set(agent, { ...live, isEnding: true });
    return true;
  }

  /** Resolves when nothing is being done with it. Never rejects. */
  get driven(): Promise<void> {
    return this.#driven;
  }

  /** The worker does what there is to do in it until this resolves, which never rejects. */
  drivenUntil(done: Promise<void>): void {
    this.#driven = done;
  }

  get hasErrands(): boolean {
    return this.#errands.length > 0;
  }

  addErrand(errand: Errand): void {
    this.#errands.push(errand);
  }

  nextErrand(): Errand | undefined {
    return this.#errands.shift();
  }

  dropErrands(): void {
    for (const errand of this.#errands.splice(0)) errand.drop();
  }

  /** For the turn that runs, or for the errand. Null: neither does. */
  get slot(): Slot | null {
    return this.#slot;
  }

  giveSlot(slot: Slot): void {
    this.#slot = slot;
  }

  /** Takes a slot if it has none. False: there is none for it. */
  takeSlot(slots: Slots): boolean {
    this.#slot ??= slots.take(this.conversation.owner);
    return this.#slot !== null;
  }

  freeSlot(): void {
    this.#slot?.free();
    this.#slot = null;
  }

  /** Its history has grown elsewhere: a session was adopted. */
  async readAgain(): Promise<void> {
    const { owner, id } = this.conversation;
    this.#conversation = (await this.parts.store.findConversation(owner, id)) ?? this.conversation;
  }

  /** The 20 most recently used sessions of an agent, newest first. Read again if anything was written since the turn began. */
  async newestSessions(agent: string): Promise<readonly Session[]> {
    const { owner, id } = this.conversation;
    const known = this.#run;
    const isCurrent = known !== null && known.turn.agent === agent && known.given === this.lease.given;
    return isCurrent ? known.facts.sessions : this.parts.store.sessions(owner, id, { agent, limit: 20 });
  }

  /** Where something is missing from the history. Only the end of a turn adds to it. */
  async unknownParts(): Promise<readonly UnknownPart[]> {
    const { owner, id } = this.conversation;
    return this.#run?.facts.unknownParts ?? this.parts.store.unknownParts(owner, id);
  }

  /** What an agent reports about its spending, compared with what may be spent. Its sessions count on from turn to turn. */
  watchOf(agent: string, isNew: boolean): BudgetWatch {
    const watch = this.#watches.get(agent) ?? new BudgetWatch(isNew);
    this.#watches.set(agent, watch);
    return watch;
  }

  openSandbox(): Promise<OpenSandbox> {
    const { owner, sandbox, cwd } = this.conversation;
    this.#sandbox ??= this.parts.sandboxes.open(sandbox, { cwd }).then((open) => ({ ...open, owner }));
    this.#sandbox.catch(() => {
      this.#sandbox = null;
    });
    return this.#sandbox;
  }

  /** Makes its sandbox ready for a turn: set up, and not too large. Throws `refused`. Returns early when the signal aborts. */
  readySandbox(signal: AbortSignal, heard?: () => void): Promise<void> {
    const known = this.#run?.facts.sandbox;
    const { parts, worker, lease, conversation } = this;
    const { owner, sandbox: id, place, cwd } = conversation;
    return readySandbox({
      ...{ parts, worker, owner, id, place, signal, ...(heard && { heard }), ...(known && { known }) },
      // We do not set up a directory that the caller named. We do set up a worktree.
      open: () => (cwd === null || isWorktree(id) ? this.openSandbox() : parts.sandboxes.open(id, { cwd: null })),
      gone: () => this.#openAgain(),
      tell: (event) => lease.note({ write: 'event', event }),
    });
  }

  /** The sandbox was removed. Its agents still work in the deleted directory, so they are ended. */
  async #openAgain(): Promise<void> {
    this.#sandbox = null;
    for (const name of this.live.keys()) {
      const agent = this.parts.agents.get(name)?.agent;
      if (agent !== undefined) await this.endLive(agent);
    }
  }

  /** Where the agent's sessions of this conversation live. */
  async storage(agent: Agent): Promise<string> {
    return agent.storage === undefined ? agent.name : agent.storage(await this.openSandbox());
  }

  /**
   * Whether the conversation has used a session with this id before. An agent whose storage can be read does not give out an id
   * twice; others may number their sessions from 1 again in every process.
   */
  async hasUsed(agent: Agent, sessionId: string): Promise<boolean> {
    const { owner, id } = this.conversation;
    const known = await this.parts.store.findSessions(owner, sessionId);
    return known.some((session) => session.conversation === id && session.agent === agent.name);
  }

  get live(): ReadonlyMap<string, LiveSession> {
    return this.#live;
  }

  /** The agent's session stays open for the next turn. */
  keepLive(agent: string, session: LiveSession): void {
    this.#live.set(agent, session);
  }

  /** The agent's session ends, or has ended, and whoever calls this writes its new state. */
  forgetLive(agent: string): void {
    this.#live.delete(agent);
  }

  /** Ends a session and keeps it no longer. The caller writes its new state, unless it was never recorded. */
  async end(agent: Agent, session: AgentSession, { force = false } = {}): Promise<void> {
    if (this.#live.get(agent.name)?.session === session) this.forgetLive(agent.name);
    await (force ? session.kill() : session.close());
  }

  /** The living session of an agent; null: there is none, or its process has ended. */
  living(agent: string): LiveSession | null {
    const live = this.live.get(agent);
    return live?.session.alive ? live : null;
  }

  /**
   * Takes a session out of use: ends its process, if this worker holds one, and writes its new state and the reason into the
   * lineage. One that never entered the lineage (`ref` null) is only ended.
   */
  async putAside(agent: Agent, { ref, state, reason, session, known, force = false }: Aside): Promise<void> {
    const live = this.live.get(agent.name);
    const isLive = live !== undefined && (live.ref === ref || live.session === session);
    if (isLive) this.forgetLive(agent.name);
    const open = session ?? (isLive ? live.session : undefined);
    await (force ? open?.kill() : open?.close());
    if (ref === null) return;
    const change = { ...known, ...aside(state) };
    await this.lease.write({ write: 'change-session', ref, change, reason });
  }

  /**
   * Ends the agent's process, if there is one. Its session stays in the agent's own storage, where the agent has one. `killedBy`: who
   * wants it killed and not closed properly.
   */
  async endLive(agent: Agent, killedBy?: string): Promise<void> {
    const live = this.live.get(agent.name);
    if (live === undefined) return;
    const reopens = canReopen(await agent.traits(await this.openSandbox()));
    const state = stateWithoutProcess({ reopens, unsettled: live.unsettled });
    const ended = reopens ? 'its process was ended' : 'its process was ended, and the agent keeps nothing without it';
    const reason = killedBy === undefined ? ended : `${killedBy} ended its process`;
    await this.putAside(agent, { ref: live.ref, state, reason, force: killedBy !== undefined });
  }

  /** Ends every process and writes nothing: the lease is lost, or the storage cannot be written. */
  async killAll(): Promise<void> {
    const sessions = [...this.live.values()].map((live) => live.session.kill());
    this.#live.clear();
    await Promise.all(sessions);
  }
}

/** A piece of work that waits until no turn runs. */
interface Errand {
  run(): Promise<void>;
  /** The conversation is left before it could run. */
  drop(): void;
}

export interface Aside {
  /** Our reference in the lineage; null: it has none. */
  readonly ref: string | null;
  readonly state: Exclude<SessionState, 'live'>;
  readonly reason: string;
  /** Its open session; left out: the living one with this reference, if there is one. */
  readonly session?: AgentSession;
  /** What else is known of it now; left out: nothing is. */
  readonly known?: Pick<SessionChange, 'position' | 'condensedTo'>;
  /** Kill the process instead of closing it properly. */
  readonly force?: boolean;
}

export interface LiveSession {
  /** Our reference of it in the lineage. */
  readonly ref: string;
  readonly session: AgentSession;
  readonly unsettled: boolean;
  /** Nothing proved what it knew when it was opened. */
  readonly unproved: boolean;
  /** It was told to end with its turn. */
  readonly isEnding?: true;
}

export function notNew(sessionId: string): string {
  return `the agent called the session ${sessionId} new, but this conversation has used it before`;
}
