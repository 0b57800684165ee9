import type { SandboxProcess } from '../core/process.ts';
import type { SessionHistory } from '../core/restore/adopted.ts';
import type { Proof } from '../core/restore/receipt.ts';
import type { ToldTurn } from '../core/restore/told.ts';
import type { AgentTraits } from '../core/restore/traits.ts';
import type { Choices } from '../core/turn/choices.ts';
import type { Prompt } from '../core/turn/content.ts';
import type { PermissionOption } from '../core/turn/permission.ts';
import type { TurnRecord } from '../core/turn/record.ts';
import type { Update } from '../core/turn/update.ts';
import type { Usage } from '../core/turn/usage.ts';
import type { OpenSandbox } from './sandbox.ts';

/**
 * A configured program that answers prompts. One object serves all conversations and keeps no state of any. It finds, starts and reads
 * everything in the given sandbox, and nothing elsewhere.
 */
export interface Agent {
  readonly name: string;
  /**
   * Probes the agent once for each `host` of sandboxes, and keeps the result. An aborted signal ends the probe, unless another caller waits
   * for it. The window is that of `model`; left out: of the one that it uses without a choice. Throws `agent_unavailable` or
   * `signed_out` with what to do.
   */
  traits(sandbox: OpenSandbox, signal?: AbortSignal, model?: string): Promise<AgentTraits>;
  /** For people: where its program was found; null or left out: it comes with Throughline. Throws `agent_unavailable`. */
  where?(sandbox: OpenSandbox): Promise<string | null>;
  /** For people: which of its reported abilities are not used, why, and what to do; null or left out: all are used. */
  doubt?(sandbox: OpenSandbox): Promise<string | null>;
  /** For people: the setting that lets it make these tool calls without asking; null or left out: none is known. */
  howToAllow?(toolCalls: readonly unknown[]): Promise<string | null>;
  /** Which of these choices no session of it has, with what there is; null or left out: none is known. Starts nothing. */
  lacks?(choices: Choices): Promise<string | null>;
  /**
   * For people: starts it as a turn would, without using its model, and returns whether somebody is logged in. What this shows of the
   * agent is in `traits` afterwards. Null or left out: it needs no login. Throws `agent_unavailable`.
   */
  login?(sandbox: OpenSandbox, signal: AbortSignal): Promise<Login | null>;
  /**
   * For people: its sessions of the working directory, whoever made them; null or left out: it cannot list them. Throws
   * `agent_unavailable`.
   */
  list?(sandbox: OpenSandbox, signal: AbortSignal): Promise<NativeSession[] | null>;
  /**
   * The program that `open` starts in a sandbox, if messages tell it the session after its start. Starts nothing. Null or left out: its
   * arguments name the session. Throws `agent_unavailable`.
   */
  program?(sandbox: OpenSandbox): Promise<ProgramStart | null>;
  /**
   * Opens a session. A refusal of the agent is returned, not thrown; throws only `agent_unavailable`, or `signed_out` when a person has
   * to sign in first. An aborted signal ends what was started.
   */
  open(request: OpenRequest): Promise<Opened>;
  /**
   * The name of the storage that holds the sessions of a sandbox. Agents with the same storage share their sessions, whatever their own
   * names and their owners are. Left out: no other agent shares them.
   */
  storage?(sandbox: OpenSandbox): Promise<string>;
  /** The current position of a session, read from its storage without starting anything; null: there is none, or it cannot be read. */
  position(sessionId: string, sandbox: OpenSandbox): Promise<string | null>;
  /**
   * What was said in a session that somebody else made, before a conversation adopts it. Sends no prompt, and runs no tool; starts the
   * agent only if nothing else can read it. Null or left out: it cannot be read. Throws `agent_unavailable`, or `session_locked` if it may be
   * readable later.
   */
  history?(sessionId: string, sandbox: OpenSandbox, signal: AbortSignal): Promise<SessionHistory | null>;
  /**
   * What the agent's own storage holds of a prompt that was sent: the part of a turn that nobody saw. Called only after the
   * agent's process was ended. Null: the storage cannot be read.
   */
  tail(sessionId: string, sent: SentPrompt, sandbox: OpenSandbox): Promise<Tail | null>;
}

/** What an agent has announced of its models, modes and options, in any conversation. Kept for later processes. */
export interface Announcements {
  /** Keeps an update if it is such an announcement. Never throws. */
  see(update: Update): void;
  /** The last announcement of each kind; empty: none is known. */
  last(): readonly Update[];
}

/** The arguments for `sandbox.spawn`. */
export interface ProgramStart {
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

/** A session as its agent lists it. */
export interface NativeSession {
  readonly id: string;
  readonly title: string | null;
  /** In milliseconds since 1970; null: the agent does not report it. */
  readonly updatedAt: number | null;
}

export interface Login {
  /** Null: not known. */
  readonly loggedIn: boolean | null;
  /** What to do, or why it is not known; null: nothing. */
  readonly hint: string | null;
}

export interface OpenRequest {
  readonly how: OpenHow;
  readonly sandbox: OpenSandbox;
  /** What the first prompt will choose, for agents that take it only when a session is opened. Left out: nothing. */
  readonly choices?: Choices;
  /** No tool may run in this session. Only for a replay, and only where the traits have `noTools`. */
  readonly noTools: boolean;
  readonly signal: AbortSignal;
}

export type OpenHow =
  /** `id`: the one that we assign, recorded already; null: the agent issues it. */
  | { readonly kind: 'new'; readonly id: string | null }
  /**
   * `memo`: the note that the adapter left with the session; null or left out: none. `rewind`: only where the traits have it;
   * null or left out: it continues where it stands.
   */
  | {
      readonly kind: 'resume';
      readonly id: string;
      readonly memo?: string | null;
      readonly rewind?: Rewind | null;
      /**
       * Everything that we told this session, oldest first. Adapters of agents that send their history when they load a session compare
       * the two. Left out: not known.
       */
      readonly told?: () => Promise<readonly ToldTurn[]>;
    }
  /** Put the history into the agent's own storage under `id`, and open that. */
  | { readonly kind: 'rehydrate'; readonly id: string; readonly from: Rehydration };

/** Reopen the session as it was before a failed prompt, which is then not part of its context. */
export interface Rewind {
  /** The position before the prompt; the opened session stands there. */
  readonly position: string;
  /** The id of the prompt to drop. Opening is refused when more than this prompt would be dropped. */
  readonly drops: string;
}

export type Rehydration =
  /** The agent's own file as it was, byte for byte. */
  | { readonly transcript: Uint8Array; readonly memo: string | null }
  /** Made from records, oldest first, within the budget. */
  | { readonly records: readonly TurnRecord[] };

export type Opened =
  | {
      readonly ok: true;
      readonly session: AgentSession;
      /** What the adapter itself can prove; the engine also compares positions. */
      readonly proof: Proof;
      /**
       * Whether the session begins with the agent's own summary of what came before; a number: the last told turn in it. Left out:
       * opening does not show it.
       */
      readonly condensed?: boolean | number;
      /** What was put into the agent's own storage, when it was rehydrated. Left out: nothing was. */
      readonly wrote?: string | Uint8Array;
    }
  | {
      readonly ok: false;
      /**
       * `not_found`: the agent has no such session. `locked`: wait and try again. `in_use`: an assigned id exists already.
       * `lacking`: the session lacks what it was told. `diverged`: somebody else has used it. `refused`: any other answer.
       */
      readonly reason: 'not_found' | 'locked' | 'in_use' | 'lacking' | 'diverged' | 'refused';
      readonly message: string;
      /** What to do about it; left out: not known. */
      readonly hint?: string;
    };

/** One open session: a process, or a connection, that takes one prompt at a time. */
export interface AgentSession {
  /** Null: the agent names it with its first answer (`session`). */
  readonly id: string | null;
  readonly process: SandboxProcess | null;
  readonly alive: boolean;
  /** The bytes of the agent's transcript file from `from` on, for our copy. Null: it cannot be read. Left out: the agent has none. */
  transcript?(from: number): Promise<Uint8Array | null>;
  /** A note for the adapter, stored at the end of a turn and given back when the session is opened again. Left out: none. */
  readonly memo?: string | null;
  /** Reads the session's position back from the agent's own storage; null: not readable. */
  position(): Promise<string | null>;
  /**
   * Sends one prompt and yields what happens. Never throws once started; the last event is always `ended`. An abort asks the agent to
   * stop, and ends its process if it does not. One prompt at a time.
   */
  prompt(request: PromptRequest): AsyncIterable<AgentEvent>;
  /**
   * The content that `prompt` sends to the agent, if it changes the wording; the same value if it does not. Left out: it never does.
   */
  wording?(content: Prompt): Prompt;
  /**
   * Sets the choices for all later prompts. What they leave out gets the value that the session had before any choice. Called before every
   * prompt, and after a turn with choices of its own. Sends nothing that is set already. `memo` contains the values to restore later. Left
   * out: the agent has nothing to choose. Never throws.
   */
  choose?(choices: Choices): Promise<Chosen>;
  /** Which of these choices it does not have, by what the agent has announced; null or left out: none is known. Never throws. */
  lacks?(choices: Choices): string | null;
  /** Ends the no-tools profile in place. False: it cannot; the session has to be reopened without the profile. */
  allowTools(): Promise<boolean>;
  /** Passes on the answer to a permission that this session asked for; null: the question is cancelled. */
  answer(permissionId: string, optionId: string | null): void;
  /** Ends the process properly, or by force. Idempotent; never throws. */
  close(): Promise<void>;
  /** Ends the process at once and waits until it is gone. Idempotent; never throws. */
  kill(): Promise<void>;
}

/** `reopen`: these can only be chosen when a session is opened. `why`: why they cannot be chosen, with what can; some may be set. */
export type Chosen = 'set' | 'reopen' | { readonly why: string };

export interface PromptRequest {
  /** Our id of the prompt; every attempt has its own. */
  readonly id: string;
  readonly content: Prompt;
  /** The position that the prompt must follow; another one gives a `proof` event `refuted`. Null: nothing to check. */
  readonly expected: string | null;
  readonly signal: AbortSignal;
}

export type AgentEvent =
  | { readonly type: 'update'; readonly update: Update }
  /** The agent names its session, or changes to another one. */
  | { readonly type: 'session'; readonly id: string }
  /** What the agent's storage shows after the prompt arrived; `counted`: it does not show the answer yet. The last one counts. */
  | { readonly type: 'proof'; readonly proof: 'proved' | 'counted' | 'refuted'; readonly detail: string }
  | {
      readonly type: 'permission';
      readonly id: string;
      readonly title: string;
      readonly toolCall: unknown;
      readonly options: readonly PermissionOption[];
    }
  | { readonly type: 'usage'; readonly usage: Partial<Usage> }
  | { readonly type: 'ended'; readonly outcome: AgentOutcome };

/**
 * `position`: where the storage stood after what this turn wrote, without what others wrote since; null: not known. Left out: ask
 * the session.
 */
export type AgentOutcome = { readonly position?: string | null } & TurnOutcome;

type TurnOutcome =
  | { readonly kind: 'completed' }
  | { readonly kind: 'cancelled' }
  /** The agent reported that it failed, and its stream was read to the end. */
  | {
      readonly kind: 'failed';
      readonly code: 'agent_failed' | 'signed_out' | 'too_long' | 'session_locked' | 'permission_denied';
      readonly message: string;
      /** What to do about it; left out: not known. */
      readonly hint?: string;
      /** Whether the same prompt may succeed when sent again. */
      readonly again: boolean;
      /** The prompt did not leave, or was not taken: it is not part of the session. Left out: it may be. */
      readonly unsent?: true;
    }
  /** The process ended or the stream broke: it is not known what happened. */
  | { readonly kind: 'lost'; readonly message: string };

/**
 * A prompt that was sent: its id, as given to `prompt`, and the position of the session before it. Without an id: nothing was sent, and
 * the agent itself did what follows the position.
 */
export interface SentPrompt {
  readonly prompt: string | null;
  readonly position: string | null;
}

/** What follows a prompt in the agent's storage, without what anybody else wrote there. */
export interface Tail {
  readonly updates: readonly Update[];
  /**
   * The position now. If the end of the storage does not follow from the prompt: the last position that does, so that the next comparison
   * finds a difference. Null: not known.
   */
  readonly position: string | null;
  /** What followed the prompt has used, as far as the storage shows it. Left out: it does not. */
  readonly usage?: Partial<Usage>;
  /**
   * The storage shows that the prompt followed the position, and that the agent finished the turn by itself: its last entry is a complete
   * answer, and no tool is open. Left out: it did not finish, or its storage does not show it.
   */
  readonly ended?: boolean;
}
