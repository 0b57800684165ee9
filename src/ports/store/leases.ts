import type { Conversation, Driver } from '../../core/conversation.ts';
import type { Budget } from '../../core/limits/budget.ts';
import type { Share } from '../../core/limits/slots.ts';
import type { ProcessIdentity, SandboxProcess } from '../../core/process.ts';
import type { UnknownPart } from '../../core/restore/adopted.ts';
import type { Session } from '../../core/restore/session.ts';
import type { Sandbox } from '../../core/sandbox/sandbox.ts';
import type { Standing } from '../../core/turn/standing.ts';
import type { Turn } from '../../core/turn/turn.ts';

/**
 * Who may write in a conversation (R2). Times of leases are the store's own: callers give and get durations. A store that several machines
 * use has one clock for all of them.
 */
export interface LeaseStore {
  /**
   * The conversations that repeated calls of `claim` would take: owners in their order, and of each owner those that have waited longest,
   * at most `limits`. Another process may claim them first. Throws `DamagedRows` as `claim` does.
   */
  next(request: ClaimRequest, limits: NextLimits): Promise<NextClaim[]>;
  /**
   * Takes the lease of one conversation that has an open turn (or of the one named by `conversation`, open turn or not): of the owner who
   * comes first by `share`, the one that has waited longest. Raises its epoch, and begins the oldest queued turn. Sessions that an earlier
   * holder left as live become dormant. A turn of an earlier epoch that was not sent is queued again first. One that was sent is returned as
   * `unfinished`, and nothing is begun. Null: nothing to claim. Throws `DamagedRows` for one whose rows are damaged: the caller names it in
   * `held`, and claims others.
   */
  claim(request: ClaimRequest): Promise<Claim | null>;
  /**
   * The turn that comes next under a lease that is held. Only reads: the write `begin` begins it, unless this lease has begun it already.
   * Null: none is open, or its agent is not among `agents`. Throws `lease_lost`, or `conflict` while a turn that was sent has not ended.
   */
  nextTurn(fence: Fence, agents: readonly string[]): Promise<TurnToRun | null>;
  /** Prolongs leases; returns those that are lost. */
  renew(fences: readonly Fence[], leaseMs: number): Promise<Fence[]>;
  /**
   * Gives the lease back; open turns become claimable. Sessions that are still recorded as live become dormant, as in `forgetWorker`. Does
   * nothing when the lease is lost.
   */
  release(fence: Fence): Promise<void>;
  /** Workers that hold leases now. */
  workers(): Promise<LeasedWorker[]>;
  /** The conversations of this owner that somebody holds now, with the sessions whose agent runs; at most `limit`. */
  holdings(owner: string, limit: number): Promise<Holding[]>;
  /** How many those are. */
  countHoldings(owner: string): Promise<number>;
  /** Lists a worker that takes up everything it can run, until `forgetWorker`. Repeated now and then, to show that it still runs. */
  enlist(taker: Taker): Promise<void>;
  /** The listed workers, including dead ones: `quietMs` is the time since a worker was listed last. */
  takers(): Promise<(Taker & { readonly quietMs: number })[]>;
  /** Stores the name of a place for people: the path of its data home. Does nothing if it is stored already. */
  namePlace(place: string, name: string): Promise<void>;
  /** Null: not known. */
  placeName(place: string): Promise<string | null>;
  /** For each of these conversations with an open turn: the oldest open turn, and who holds the conversation. */
  standings(owner: string, conversations: readonly string[]): Promise<Standing[]>;
  /** The recorded processes of the conversations that a worker holds: of their sessions, and of turns that were sent. */
  processesOf(worker: string): Promise<SandboxProcess[]>;
  /**
   * Frees every lease of a worker that is known to be gone, and removes it from the list of takers. Its live sessions become dormant, except
   * that of a turn which was sent and has not ended.
   */
  forgetWorker(worker: string): Promise<void>;
}

/** The right to write: the epoch under which the lease was taken. */
export interface Fence {
  readonly conversation: string;
  readonly owner: string;
  readonly epoch: number;
}

export interface WorkerInfo {
  readonly id: string;
  readonly process: ProcessIdentity;
}

export interface LeasedWorker extends WorkerInfo {
  /** How long until the first of its leases of conversations with an open turn expires. Left out: it has none, or it is not needed here. */
  readonly leftMs?: number;
}

/** A conversation that somebody holds. */
export interface Holding {
  readonly conversation: string;
  readonly key: string | null;
  readonly title: string;
  readonly holder: ProcessIdentity;
  /** How long the lease lasts unless it is renewed; 0 or less: it has expired. */
  readonly leftMs: number;
  /** Open turns. */
  readonly open: number;
  /** The live sessions, including those that wait for the next prompt. */
  readonly sessions: readonly HeldSession[];
}

export interface HeldSession {
  /** The agent's id. */
  readonly id: string;
  readonly agent: string;
  readonly openedAt: number;
  readonly usedAt: number;
}

/** A worker that also runs what others have submitted: conversations of its place whose next turn is for one of its agents. */
export interface Taker extends WorkerInfo {
  readonly place: string;
  readonly agents: readonly string[];
}

export interface ClaimRequest {
  readonly worker: WorkerInfo;
  readonly place: string;
  /** The agents that this worker can run; a conversation whose next turn needs another one is left alone. */
  readonly agents: readonly string[];
  readonly driver: Driver;
  readonly leaseMs: number;
  /** Only this conversation, whoever owns it, with or without an open turn. Left out: any with an open turn. */
  readonly conversation?: string;
  /** Only what has been claimable for this long, so that a process that waits for its own turn comes first. Left out: 0. */
  readonly idleMs?: number;
  /** In which order owners come. Left out: by name. */
  readonly share?: Share;
  /** No turn is begun. If no conversation is named: only one with a turn that its last holder left in the middle. */
  readonly withoutTurn?: boolean;
  /**
   * What this worker holds already, or has set aside: not claimed, and not read. Also if its lease has expired because the worker was
   * suspended.
   */
  readonly held?: readonly string[];
}

export interface NextLimits {
  readonly perOwner: number;
  /** Of all owners together. */
  readonly all: number;
}

export interface NextClaim {
  readonly owner: string;
  readonly conversation: string;
}

/** A turn with what running it needs from the store, as of when the turn was read. */
export interface TurnToRun {
  readonly turn: Turn;
  readonly facts: TurnFacts;
}

/** Only the holder of the lease changes any of it, except the limit and, between turns, the unknown parts. */
export interface TurnFacts {
  /** The conversation's own limit of spending per day; null: it has none. */
  readonly limitPerDay: Budget | null;
  /** The 20 most recently used sessions of the agent of the turn, newest first. */
  readonly sessions: readonly Session[];
  /** As `unknownParts` returns them. */
  readonly unknownParts: readonly UnknownPart[];
  /** The sandbox of the conversation, if the holder has it open and nobody else has it alone; null: it has to be opened. */
  readonly sandbox: Pick<Sandbox, 'id' | 'name' | 'setup'> | null;
}

export interface Claim {
  readonly fence: Fence;
  readonly conversation: Conversation;
  /** The turn that was begun, to be run now; null: there is none, or `unfinished` comes first. */
  readonly turn: Turn | null;
  /** The facts of that turn. */
  readonly facts: TurnFacts | null;
  /** Sent under an earlier epoch and not ended: it is ended before anything else (R6). */
  readonly unfinished: Turn | null;
  /** The name of the place that the conversation was moved from since a session of it was last used; null: it was not. */
  readonly movedFrom: string | null;
}
