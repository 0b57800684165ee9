import type { Failure } from '../../core/errors.ts';
import type { LockWaits } from '../../core/restore/lock-wait.ts';
import { NOTHING_OMITTED, type Omissions, type Proof, type Receipt, type Tried } from '../../core/restore/receipt.ts';
import type { EffectiveRestore } from '../../core/restore/restore-settings.ts';
import type { Session, SessionOrigin, UnusableState } from '../../core/restore/session.ts';
import type { ToldPart } from '../../core/restore/told.ts';
import type { AgentTraits } from '../../core/restore/traits.ts';
import type { Choices } from '../../core/turn/choices.ts';
import type { ContentBlock } from '../../core/turn/content.ts';
import type { Sent } from '../../core/turn/turn.ts';
import { addUsage, NO_USAGE, type Usage } from '../../core/turn/usage.ts';
import type { Agent, AgentSession, Rewind } from '../../ports/agent.ts';
import type { Held } from '../worker/held.ts';

/* What a restore is asked for, and the values that its parts exchange. */

export interface RestoreRequest {
  readonly held: Held;
  readonly agent: Agent;
  readonly traits: AgentTraits;
  readonly settings: EffectiveRestore;
  /** The native session that the caller named; null: none. */
  readonly explicit: string | null;
  /** The id that the caller chose for a new session; null: none. */
  readonly newSession: string | null;
  /** The turn it is for; null: a warm-up. */
  readonly turn: { readonly id: string; readonly n: number } | null;
  /** What the turn or, for a warm-up, the conversation chooses; left out: nothing. */
  readonly choices?: Choices;
  readonly attempt: number;
  /** After a failed attempt or turn: where its session is rewound to; null: it is not rewound. */
  readonly rewind: RewindTo | null;
  /** How often the block was already refused as too long. */
  readonly shrink: number;
  readonly earlier: EarlierAttempts;
  readonly signal: AbortSignal;
  /** Called when the agent shows that it is alive, or waits for a lock; left out: nobody measures how long it is silent. */
  readonly heard?: () => void;
}

/** What earlier attempts of the turn have tried, and their waits for locked sessions. The receipt has these too. */
export type EarlierAttempts = Pick<Receipt, 'tried' | 'lockWaits'>;

export const NO_EARLIER_ATTEMPTS: EarlierAttempts = { tried: [], lockWaits: { count: 0, ms: 0 } };

/** A restore that runs, and what its receipt counts. Each restore has an object of its own. */
export interface Restoring extends RestoreRequest {
  /** Monotonic. */
  readonly startedAt: number;
  /** With those of earlier attempts. Only `restore.ts` adds to them. */
  readonly tried: Tried[];
  /** With those of earlier attempts. Only `openWithLockRetry` adds to them. */
  lockWaits: LockWaits;
}

/** A session of the lineage, and the prompt to remove from it. */
export type RewindTo = Rewind & { readonly ref: string };

/** A session at the head, and what is sent before the prompt. */
export interface Restored {
  readonly open: OpenSession;
  readonly receipt: Receipt;
  readonly preface: readonly ContentBlock[];
  /** What the session was told already. */
  readonly told: readonly ToldPart[];
  readonly delivered: Sent['delivered'];
  /** Turns of the history that this restore left out or shortened. */
  readonly cutTurns: number;
  /** Images of earlier turns that this restore gave to the session. */
  readonly images: number;
}

export interface NotRestored {
  readonly failure: Failure;
  readonly receipt: Receipt;
}

/** An open session, with what is written about it into the lineage. */
export interface OpenSession {
  readonly session: AgentSession;
  /** Our reference, when it is in the lineage already; null: it is written when the prompt is sent, or when it is named. */
  readonly ref: string | null;
  readonly origin: SessionOrigin;
  /** Our reference of the session it follows; null: none. */
  readonly parent: string | null;
  readonly watermark: number;
  readonly dropped: number;
  readonly omitted: Omissions;
  readonly condensedTo: number;
  readonly position: string | null;
  /** How many bytes of its transcript file we have a copy of. */
  readonly mirrored: number;
  /** Of a transcript that was made from records for this restore: turns left out or shortened, and its images. Left out: none was made. */
  readonly made?: { readonly cutTurns: number; readonly images: number };
  /** What was put into its storage; left out: nothing was. */
  readonly told?: readonly ToldPart[];
  /** It was adopted, its own history could not be read, and no turn in it is recorded yet. Left out: no. */
  readonly unread?: boolean;
  /** It did something that is in no record; the prompt tells it so. Left out: no. */
  readonly unsettled?: boolean;
}

/** What is known of a session in the lineage. */
export function inLineage(row: Session): Omit<OpenSession, 'session'> {
  const { ref, origin, parent, watermark, dropped, omitted, condensedTo, position, mirrored } = row;
  const unread = row.unread && row.turns === 0;
  return { ref, origin, parent, watermark, dropped, omitted, condensedTo, position, mirrored, unread };
}

/** The result of opening a session, and how well it is proved that it has its context. */
export type OpenResult = { readonly open: OpenSession; readonly proof: Proof } | StepFailure;

/**
 * A step that did not work. `final`: no other step may be tried. `aside`: a session that `restore` puts aside for that reason. No later
 * step may use it, although its agent might open it: closing a session can restore its storage. `spent`: what the step has cost; left
 * out: nothing. `hint`: what to do about it if no other step works; left out: nothing that is known.
 */
export interface StepFailure {
  readonly failure: string;
  readonly hint?: string;
  readonly spent?: Spent;
  readonly final?: Failure;
  readonly aside?: { readonly ref: string; readonly state: UnusableState };
}

/** What was given to a session before the prompt. */
export interface Delivered {
  /** Blocks to put before the prompt. */
  readonly preface: readonly ContentBlock[];
  /** Prompts that were sent already. */
  readonly told: readonly ToldPart[];
  readonly sent: Sent['delivered'];
  readonly turns: number;
  readonly tokens: number;
  readonly dropped: number;
  readonly omitted: Omissions;
  /** Images of earlier turns. */
  readonly images: number;
  readonly unsettled: boolean;
  readonly usage: Usage;
  readonly toolsRan: readonly string[];
  /** The session to continue with, if it had to be opened again for the delivery; null: the same. */
  readonly session: AgentSession | null;
  /** Our reference of the last session that the agent left in a replay, or when it was reopened after it; null: it stayed in one. */
  readonly parent: string | null;
  /** How well it is proved that the session has what was delivered; null: the proof of the step counts. */
  readonly proof: Proof | null;
  /** The last turn of which the agent made a summary by the end of a replay; 0: it made none. */
  readonly condensedTo: number;
}

export const NOTHING_DELIVERED: Delivered = {
  preface: [],
  told: [],
  sent: null,
  turns: 0,
  tokens: 0,
  dropped: 0,
  omitted: NOTHING_OMITTED,
  images: 0,
  unsettled: false,
  usage: NO_USAGE,
  toolsRan: [],
  session: null,
  parent: null,
  proof: null,
  condensedTo: 0,
};

/** What a restore has cost and done, also if it failed. */
export type Spent = Pick<Delivered, 'usage' | 'toolsRan'>;

export const NOTHING_SPENT: Spent = { usage: NO_USAGE, toolsRan: [] };

export function addSpent(before: Spent, { usage, toolsRan }: Spent): Spent {
  return { usage: addUsage(before.usage, usage), toolsRan: [...before.toolsRan, ...toolsRan] };
}
