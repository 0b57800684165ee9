import type { TitleSource } from '../conversation.ts';
import type { Failure } from '../errors.ts';
import type { ConversationEvent, EventKind, EventPayloads } from '../event.ts';
import type { RestoreProgress, RestoreStarted, Tried } from '../restore/receipt.ts';
import type { SessionOrigin, SessionState } from '../restore/session.ts';
import type { AnsweredFrom, PermissionOption } from '../turn/permission.ts';
import type { TurnEnd } from '../turn/turn.ts';
import type { Update } from '../turn/update.ts';
import type { Usage } from '../turn/usage.ts';
import { type PublicParent, toPublicParent } from './conversation.ts';
import { type PublicReceipt, toPublicReceipt } from './session.ts';
import { type PublicSent, toPublicFailure, toPublicSent } from './turn.ts';

/**
 * Everything that can happen in a conversation, as all interfaces show it: the library's `follow` and `send`, server-sent
 * events, and `--json` of the command line. Plain JSON values, fit for browsers.
 *
 * Narrow an event by its `kind`, as in the example.
 *
 * `turnId` is the id of a turn, `n` its number within the conversation. `sessionId` is always the agent's own id.
 *
 * @example
 * for await (const event of chat.follow({ after: 0 })) {
 *   if (event.kind === 'turn.ended') console.log(event.payload.reply);
 * }
 */
export type PublicEvent = {
  [K in PublicEventKind]: {
    readonly conversationId: string;
    /** Counts the events of the conversation from 1 without gaps (R5). Follow after it to continue. */
    readonly seq: number;
    readonly kind: K;
    /** The turn it belongs to; null: none. */
    readonly turnId: string | null;
    /** Milliseconds since 1970. */
    readonly at: number;
    readonly payload: PublicEventPayloads[K];
  };
}[PublicEventKind];

/**
 * The name of a kind of event.
 *
 * @example
 * import type { EventKind } from 'throughline';
 *
 * const SHOWN: readonly EventKind[] = ['turn.queued', 'turn.ended'];
 * for await (const event of chat.follow()) if (SHOWN.includes(event.kind)) console.log(event.seq, event.kind);
 */
export type PublicEventKind = keyof PublicEventPayloads;

/**
 * The payload of every kind of public event.
 *
 * @example
 * import type { EventPayloads } from 'throughline';
 *
 * const line = ({ n, outcome }: EventPayloads['turn.ended']) => `turn ${n}: ${outcome}`;
 */
export interface PublicEventPayloads {
  'conversation.created': { readonly key: string | null; readonly agent: string | null; readonly cwd: string | null };
  /** This conversation began as a copy of another one. */
  'conversation.forked': PublicParent;
  'conversation.imported': { readonly turns: number };
  'conversation.titled': { readonly title: string; readonly source: TitleSource };
  /** How lists show it from now on: pinned, put away. */
  'conversation.arranged': { readonly pinned: boolean; readonly putAway: boolean };
  /** It continues in another place: data homes, by their names. The files of its work stay where they were. */
  'conversation.moved': { readonly from: string; readonly to: string; readonly by: string };

  /**
   * The turn is stored and will run. `preview`: the beginning of its prompt. `retryOf`: the id of the turn it repeats. `replaces`: the
   * id of the queued turn whose place it took; left out: none. `by`: who asked for it, through a server: `ann by key ID`; left out: the
   * owner, or a task.
   */
  'turn.queued': {
    readonly n: number;
    readonly agent: string;
    readonly requestId: string | null;
    readonly retryOf: string | null;
    readonly replaces?: string;
    readonly by?: string;
    readonly preview: string;
  };
  'turn.started': { readonly n: number; readonly attempt: number };
  /** A worker ended before anything was sent. The turn waits for the next one. */
  'turn.requeued': { readonly n: number; readonly attempt: number };
  /** Stored just before the prompt leaves. From here on it may have reached the agent. */
  'turn.sent': { readonly n: number; readonly sent: PublicSent };
  /** What the agent does: an ACP `session/update` value. `acp` is the protocol version that it follows. */
  'turn.update': { readonly acp: number; readonly update: Update };
  /** This attempt failed in a way that allows another one within the turn. */
  'turn.retrying': { readonly n: number; readonly attempt: number; readonly failure: Failure };
  /**
   * The agent sends nothing. `tool`: what it runs; null: nothing. `endsInMs`: when the turn is ended if nothing comes;
   * null: never.
   */
  'turn.stalled': {
    readonly n: number;
    readonly silentMs: number;
    readonly tool: string | null;
    readonly endsInMs: number | null;
  };
  'turn.cancel_requested': { readonly n: number; readonly by: string };
  /**
   * The last event of a turn. `failure` is null when it completed. `recovered`: its end was not seen, but read from the agent's
   * own storage afterwards. `replacedBy`: of a turn that a change of the queue ended: the id of the turn that took its place; null:
   * none, it was dropped.
   */
  'turn.ended': {
    readonly n: number;
    readonly outcome: TurnEnd;
    readonly failure: Failure | null;
    readonly reply: string;
    readonly usage: Usage;
    readonly recovered?: true;
    readonly replacedBy?: string | null;
  };

  /** `parent`: the agent's id of the session it continues; null: none. */
  'session.opened': {
    readonly sessionId: string;
    readonly agent: string;
    readonly origin: SessionOrigin;
    readonly parent: string | null;
  };
  'session.changed': {
    readonly sessionId: string;
    readonly state: SessionState;
    readonly watermark: number;
    readonly reason: string | null;
  };
  /** The agent's session is in use elsewhere; we wait and try again. `ms`: how long so far. */
  'session.locked': { readonly sessionId: string | null; readonly waits: number; readonly ms: number };

  /** A way to restore the session is being tried, and takes a moment. `total`: how many turns the history has. */
  'restore.started': RestoreStarted;
  /** How many turns the session has been given so far. */
  'restore.progress': RestoreProgress;
  /** One way to restore the session failed; the next is tried. */
  'restore.tried': Tried;
  'restore.receipt': PublicReceipt;

  /** The sandbox was made. There is no event for one that is only a folder of this conversation. `name`: of a shared one. */
  'sandbox.created': { readonly sandboxId: string; readonly name: string | null };
  /** Another process than the last one opened it. */
  'sandbox.reopened': { readonly sandboxId: string; readonly name: string | null };
  /** Steps of the set-up ran, in this order. `code`: how the step ended, 0 for success; null: it was ended, or could not be started. */
  'sandbox.set-up': {
    readonly sandboxId: string;
    readonly name: string | null;
    readonly steps: readonly { readonly name: string; readonly ms: number; readonly code: number | null }[];
  };
  /** Nobody uses it, and nothing runs in it any more. The next turn reopens it. */
  'sandbox.rested': { readonly sandboxId: string; readonly name: string | null; readonly reason: string };
  /** It was removed with everything in it. The next turn makes it again. */
  'sandbox.destroyed': { readonly sandboxId: string; readonly name: string | null; readonly reason: string };

  /** `toolCall`: what the agent wants to do, as the agent sent it (an ACP tool call). */
  'permission.asked': {
    readonly permissionId: string;
    readonly title: string;
    readonly toolCall: unknown;
    readonly options: readonly PermissionOption[];
  };
  /** `from`: from where, as the one who answered has told; left out: not told. */
  'permission.answered': {
    readonly permissionId: string;
    readonly optionId: string;
    readonly by: string;
    readonly from?: AnsweredFrom;
  };
  /** Nobody could answer, or nobody did in time. The agent gets a refusal. */
  'permission.denied': { readonly permissionId: string; readonly reason: string };
  /** Its attempt ended before anybody answered. */
  'permission.withdrawn': { readonly permissionId: string; readonly reason: string };

  /** A newer version has stored a kind of event that this one does not know. It keeps its number. `kind`: that kind. */
  'event.unknown': { readonly kind: string };
}

/** Every stored kind has a public form, or this does not compile. `turn`: the id of its turn; null: it has none. */
const PAYLOADS: {
  readonly [K in EventKind]: (stored: EventPayloads[K], turn: string | null) => PublicEventPayloads[K];
} = {
  'conversation.created': unchanged,
  'conversation.forked': toPublicParent,
  'conversation.imported': unchanged,
  'conversation.titled': unchanged,
  'conversation.arranged': unchanged,
  'conversation.moved': unchanged,
  'turn.queued': unchanged,
  'turn.started': unchanged,
  'turn.requeued': unchanged,
  'turn.sent': ({ n, sent }) => ({ n, sent: toPublicSent(sent) }),
  'turn.update': unchanged,
  'turn.retrying': unchanged,
  'turn.stalled': unchanged,
  'turn.cancel_requested': unchanged,
  'turn.ended': (ended, turn) => ({ ...ended, failure: toPublicFailure(ended.failure, turn) }),
  'session.opened': ({ id, agent, origin, parent }) => ({ sessionId: id, agent, origin, parent }),
  'session.changed': ({ id, state, watermark, reason }) => ({ sessionId: id, state, watermark, reason }),
  'session.locked': ({ id, waits, ms }) => ({ sessionId: id, waits, ms }),
  'restore.started': unchanged,
  'restore.progress': unchanged,
  'restore.tried': unchanged,
  'restore.receipt': toPublicReceipt,
  'sandbox.created': ({ id, name }) => ({ sandboxId: id, name }),
  'sandbox.reopened': ({ id, name }) => ({ sandboxId: id, name }),
  'sandbox.set-up': ({ id, name, steps }) => ({ sandboxId: id, name, steps }),
  'sandbox.rested': ({ id, name, reason }) => ({ sandboxId: id, name, reason }),
  'sandbox.destroyed': ({ id, name, reason }) => ({ sandboxId: id, name, reason }),
  'permission.asked': ({ id, title, toolCall, options }) => ({ permissionId: id, title, toolCall, options }),
  'permission.answered': ({ id, ...answer }) => ({ permissionId: id, ...answer }),
  'permission.denied': ({ id, reason }) => ({ permissionId: id, reason }),
  'permission.withdrawn': ({ id, reason }) => ({ permissionId: id, reason }),
};

function unchanged<T>(payload: T): T {
  return payload;
}

/** A stored event as it is published. */
export function toPublicEvent({ conversation, seq, kind, turn, at, payload }: ConversationEvent): PublicEvent {
  const common = { conversationId: conversation, seq, turnId: turn, at };
  // Two versions may write to one store. Nothing says what of such a payload is public, and without the event readers would see a gap (R5).
  if (!Object.hasOwn(PAYLOADS, kind)) return { ...common, kind: 'event.unknown', payload: { kind } };
  const toPublic = PAYLOADS[kind] as (stored: unknown, turn: string | null) => unknown;
  return { ...common, kind, payload: toPublic(payload, turn) } as PublicEvent;
}
