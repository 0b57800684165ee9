import type { Changes, Keep, Kept } from '../core/changes.ts';
import type { Arrangement, ConversationFilter } from '../core/conversation.ts';
import type { ChainCheck } from '../core/event.ts';
import type { OrUndefined } from '../core/input/arguments.ts';
import type { UsagePage } from '../core/input/usage-page.ts';
import type { BudgetInput } from '../core/limits/budget.ts';
import type { TimeOverride } from '../core/limits/time-limits.ts';
import type { ExportedConversation } from '../core/portable.ts';
import type { PublicConversation, PublicSummary } from '../core/public/conversation.ts';
import type { PublicEvent } from '../core/public/event.ts';
import type { Directories, Files } from '../core/public/files.ts';
import type { PublicReceipt, PublicRestore, PublicSession } from '../core/public/session.ts';
import type { PublicPermission, PublicTold, PublicTool, PublicTurn, TurnOutline } from '../core/public/turn.ts';
import type { RestoreOverride, TurnRestore } from '../core/restore/restore-settings.ts';
import type { AgentTraits } from '../core/restore/traits.ts';
import type { Choices, ChoicesChange } from '../core/turn/choices.ts';
import type { Prompt } from '../core/turn/content.ts';
import type { AnsweredFrom, Denial } from '../core/turn/permission.ts';
import type { TurnRecord } from '../core/turn/record.ts';
import type { PermissionMode } from '../core/turn/turn.ts';
import type { Update } from '../core/turn/update.ts';
import type { Login } from './agent.ts';
import type { EngineSandboxes } from './engine/sandboxes.ts';
import type { Requeued } from './store/turns.ts';
import type { LastUsage, UsageRow } from './store/usage.ts';

/**
 * Everything that a face can do, on behalf of one owner. Embedded or over HTTP: the same interface, the same answers. All values are
 * public ones (`core/public/`), without internals. A conversation is named by our id or by the caller's key. An unknown one, or one of another
 * owner, is `not_found`; only a first prompt creates it.
 *
 * @example
 * import type { Engine } from 'throughline';
 *
 * const engine: Engine = tl.engine; // below the library: for faces of your own
 * console.log(engine.owner);
 */
export interface Engine {
  readonly owner: string;
  /**
   * The same engine on behalf of another owner. `by`: who acts, as recorded with answers and cancels; left out: the owner. An owner that is
   * given with `by` was checked before.
   */
  as(owner: string, by?: string): Engine;
  /** Where the agents of this owner work. */
  readonly sandboxes: EngineSandboxes;

  /** Finds the conversation by its key or makes it. `refused` when it exists with other pinned settings (R7, R8). */
  ensure(spec: ConversationSpec): Promise<PublicConversation>;
  conversation(idOrKey: string): Promise<PublicConversation>;
  /**
   * Most recently changed first; `before` names the last one of the previous page. As fast with a filter as without. This and every other
   * page ends early when its values are large: only an empty page is the last.
   */
  list(page?: ListOptions): Promise<PublicConversation[]>;
  rename(conversation: string, title: string): Promise<PublicConversation>;
  /** Pins it, puts it away, or undoes that. This only changes what lists show; a new prompt brings it back. Its `updatedAt` stays. */
  arrange(conversation: string, change: Arrangement): Promise<PublicConversation>;
  /** How many conversations of this owner are put away. */
  countPutAway(): Promise<number>;
  /**
   * Moves a conversation whose data home is gone to the place of this engine (R8). It continues in an empty sandbox of its own: its files
   * stay where they were, and the receipt of the next turn says so. `conflict` while a process runs in its old place. Does nothing if it has
   * the place of this engine already.
   */
  move(conversation: string): Promise<PublicConversation>;

  /**
   * Deletes everything that was said in it and frees its key; only `verify`, by its id, still finds it. Returns what is still there of what
   * agents have written themselves. `conflict` while a turn, or a task in it, is open. `sandbox`: also deletes its own sandbox, even of a
   * conversation that was erased before, by its id. `refused` when the sandbox is shared, or another conversation works in it; then nothing is
   * erased. A directory that the caller named is never deleted. `head`: erases only what was verified; `conflict` when something was added
   * since.
   */
  erase(conversation: string, options?: EraseOptions): Promise<Erased>;

  /**
   * Stores a prompt and returns at once, before any agent is started. `follow` after `seq` to see what happens. The first prompt
   * to a new key creates the conversation, in the same commit.
   */
  submit(conversation: string, prompt: Prompt | string, options?: SubmitOptions): Promise<Submitted>;
  turn(id: string): Promise<PublicTurn>;
  /** The answer of a turn that has ended. Throws `conflict` when it has not, `cancelled` when the signal aborts. */
  answerOf(turn: string, options?: AnswerOptions): Promise<TurnAnswer>;
  /**
   * Turns that were submitted with `deliverTo` and are not `delivered` yet, whether they have ended or not; in the order in which they were
   * accepted, a page of 100 or of `limit`. `after`: the id of the last turn of the previous page.
   */
  pending(page?: PendingPage): Promise<PendingTurn[]>;
  /**
   * Records that the answer of a turn was delivered: the turn is not pending any more. May be repeated. `conflict` when the turn has not
   * ended, `invalid` when it was submitted without `deliverTo`.
   */
  delivered(turn: string): Promise<PublicTurn>;
  /**
   * Exactly what the session of a turn was told with its prompt, in `attempt` or in the last attempt that was sent. It is stored with its
   * hashes, which are checked here. `not_found` when nothing was sent, or it was not kept; `conflict` when nothing was sent yet.
   */
  told(turn: string, options?: ToldOptions): Promise<PublicTold>;
  /** Turns with their answers, by number, rising, a page; with `before`, the last ones before that number. */
  turns(conversation: string, page?: TurnPage): Promise<TurnView[]>;
  /** Its turns without prompts and answers, in pages as `turns`: for drawing a long conversation. */
  outline(conversation: string, page?: TurnPage): Promise<TurnOutline[]>;
  /** The records of its history, in pages as `turns`. A turn that was never sent has none. */
  records(conversation: string, page?: TurnPage): Promise<TurnRecord[]>;
  /** Asks to cancel the turn, and returns it as it is then. A running turn ends a little later. */
  cancel(turn: string): Promise<PublicTurn>;
  /** The queued turns, in the order in which they will run; a page of 100 or of `limit`. */
  queue(conversation: string, page?: QueuePage): Promise<PublicTurn[]>;
  /**
   * Edits, moves and drops queued turns in one step. `turns` names every queued turn, in the wanted order. Turns keep their numbers: one
   * that is edited, or moved behind a later one, ends as cancelled, and a new turn with its options takes its place (`replaces`,
   * `replacedBy`). As few as possible are replaced. `conflict`, and nothing is changed, when the queue has other turns: one has begun, or was
   * added. `refused` for a turn of a task. May be repeated with the same `requestId`.
   */
  requeue(
    conversation: string,
    turns: readonly QueueTurn[],
    options?: { requestId?: string | undefined },
  ): Promise<Requeued>;
  /**
   * Submits the prompt of an ended turn again, as a new turn with `retryOf`. `permissions`: how questions are handled; left out: as in
   * that turn.
   */
  retry(turn: string, options?: Pick<SubmitOptions, 'requestId' | 'permissions'>): Promise<Submitted>;

  /**
   * Yields events after `after` in order, without gaps or duplicates, and waits for more until the signal aborts. Throws `log_changed`
   * when there is no such event, or when the log is not `log` (the `logId` of the conversation when the number was seen): then read
   * again from the start.
   */
  follow(conversation: string, options?: FollowOptions): AsyncIterable<PublicEvent>;
  /**
   * A page of its stored events, for reading backwards: the last ones before `before`, by number, rising. Costs the same at any length. An
   * empty page: there are no earlier ones. Throws `log_changed` as `follow` does.
   */
  events(conversation: string, page?: EventPage): Promise<PublicEvent[]>;
  /**
   * Yields which conversations of this owner have changed, until the signal aborts. These are only hints to read again: they may come late,
   * twice or without a change, and several changes of one conversation may be one hint.
   */
  hints(options?: { signal?: AbortSignal | undefined }): AsyncIterable<Hint>;
  /**
   * Restores the session before a prompt comes. Returns the receipt; null: another process holds the conversation, or no slot is free.
   */
  warm(
    conversation: string,
    options?: { agent?: string | undefined; restore?: OrUndefined<TurnRestore> | undefined },
  ): Promise<PublicReceipt | null>;

  /**
   * Ends the processes of its live sessions, and records who did it. No prompt and no answer is lost: the next prompt restores the context,
   * and its receipt says how. Interrupts a running turn. Returns the sessions that had a process. Idempotent.
   */
  kill(conversation: string): Promise<PublicSession[]>;

  /**
   * What the agent changed in the directory of the conversation: what differs from the last commit of the git repository there, and
   * files that git does not know. Throws `not_found` when there is no repository, `refused` when the directory is elsewhere, and `timed_out`.
   */
  changes(conversation: string): Promise<Changes>;
  /**
   * Commits what the agent changed in the worktree of the conversation, or merges its commits into the branch of the directory that the
   * conversation was given, or both. Hooks and filters of the repository do not run. `conflict` while a turn runs, and when there is
   * nothing to keep; `refused` when it has no worktree, and when a person has to merge.
   */
  keepChanges(conversation: string, keep: Keep): Promise<Kept>;
  /** Discards the uncommitted changes in the worktree of the conversation; ignored files stay. Throws as `keepChanges`. */
  discardChanges(conversation: string): Promise<void>;

  /**
   * Files and folders in the directory of the conversation whose paths contain `match`, to be named in a prompt: best match first, at most 100.
   * Not in `.git`, `node_modules` and the like, unless `match` names them, and never through links. Throws `not_found` when the directory that
   * the caller named is gone, `refused` when it is elsewhere.
   */
  files(conversation: string, options?: { match?: string | undefined }): Promise<Files>;
  /**
   * The directories in `path` that a person may choose for a conversation: below the roots that the settings name (`sandbox.directories`),
   * the first of which is listed without `path`. `path` is absolute or begins with "~"; `hidden`: also those whose name begins with a dot.
   * Links are not followed out of the roots. Throws `refused`, also where conversations do not work on the machine of the server.
   */
  directories(options?: DirectoryOptions): Promise<Directories>;

  show(conversation: string, options?: Bounded): Promise<ConversationView>;
  summary(conversation: string): Promise<PublicSummary>;
  sessions(conversation: string, options?: Bounded): Promise<PublicSession[]>;
  receipts(conversation: string, options?: Bounded): Promise<PublicReceipt[]>;
  /**
   * The receipts of a page of turns, with warm-ups in their places, rising: how each session was restored. In pages as `turns`; `limit`
   * counts the turns that have any. Continue after the last `n`, or before the first.
   */
  restores(conversation: string, page?: TurnPage): Promise<PublicRestore[]>;
  permission(id: string): Promise<PublicPermission>;
  /** Oldest first, a page of 100 or of `limit`; `after` is the id of the last one of the previous page. */
  permissions(filter?: PermissionFilter): Promise<PublicPermission[]>;
  /**
   * The first answer wins, and is recorded with who gave it and when. `conflict`: another one counted, and the message says which and whose;
   * or nobody waits for it any more.
   */
  answer(permission: string, optionId: string, options?: PermissionAnswer): Promise<PublicPermission>;

  /** Copies the history up to a turn into a new conversation. */
  fork(conversation: string, options?: ForkOptions): Promise<PublicConversation>;
  export(conversation: string, options?: Bounded): Promise<ExportedConversation>;
  /**
   * Makes a conversation of what `export` returned, or of a list of messages `{ role, content }`. The first turn here restores the
   * context in a new session.
   */
  import(exported: unknown, options?: ImportOptions): Promise<PublicConversation>;
  /** Conversations whose title has all the words, then turns whose prompt or answer does. The last word may be the beginning of one. */
  search(query: string, options?: { limit?: number | undefined }): Promise<SearchHit[]>;
  /** What was used, by day (UTC) and agent, newest day first, a page of 100 or of `limit`. */
  usage(page?: UsagePage<LastUsage>): Promise<UsageRow[]>;
  /**
   * Checks the hash chain of the events, also of an erased conversation by its id. `head`: what an earlier check returned, kept elsewhere.
   * Throws `invalid` if it is malformed.
   */
  verify(conversation: string, options?: { head?: string | undefined }): Promise<ChainCheck>;
  /**
   * The configured agents. `login`: also starts each, for at most half a minute, to see whether somebody is logged in. Callers at the same
   * time share one probe of an agent, and its result is kept for up to half a minute.
   */
  agents(options?: { login?: boolean | undefined }): Promise<AgentInfo[]>;

  /**
   * Starts nothing more, waits up to `graceMs` (left out: 5 seconds) for turns that were sent, interrupts the rest, and closes. Queued turns
   * stay stored. Idempotent.
   */
  close(options?: { graceMs?: number | undefined }): Promise<void>;
}

export interface FollowOptions {
  readonly after?: number | undefined;
  readonly log?: string | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** 100 or `limit` turns, in rising order: those after the number `after` (left out: from the first), or the last ones before `before`. */
export interface TurnPage {
  readonly after?: number | undefined;
  /** `end`: the last ones. Not together with `after`. */
  readonly before?: number | 'end' | undefined;
  readonly limit?: number | undefined;
}

/** 100 or `limit` events before the number `before`, in rising order. */
export interface EventPage {
  /** Left out, or `end`: the last ones. */
  readonly before?: number | 'end' | undefined;
  /** Only events of the turn of this number. An imported turn has none. */
  readonly turn?: number | undefined;
  /** The log that `before` counts in. */
  readonly log?: string | undefined;
  readonly limit?: number | undefined;
}

/** `most`: a conversation of more than about this many bytes is `too_large`; left out: no limit. */
export interface Bounded {
  readonly most?: number | undefined;
}

export interface ToldOptions extends Bounded {
  readonly attempt?: number | undefined;
}

export interface PermissionAnswer {
  /** From where it is given, to be shown with it: `page`, `phone`, `command_line` or `program`. Left out: not told. */
  readonly from?: AnsweredFrom | undefined;
}

export interface PermissionFilter {
  readonly conversation?: string | undefined;
  /** Only those of this turn. */
  readonly turn?: string | undefined;
  /** Only those of the turns of this conversation from this number on. Needs `conversation`. */
  readonly fromTurn?: number | undefined;
  /** Only those of the turns up to this number. Needs `conversation`. */
  readonly toTurn?: number | undefined;
  /** Only those that wait for an answer, or only the others. */
  readonly open?: boolean | undefined;
  readonly after?: string | undefined;
  readonly limit?: number | undefined;
}

/**
 * A conversation may have changed.
 *
 * @example
 * for await (const { conversationId } of tl.hints()) console.log('look again at', conversationId ?? 'all');
 */
export interface Hint {
  /** Null: any may have changed. */
  readonly conversationId: string | null;
  /** The number of its last event; null: any may have changed. */
  readonly seq: number | null;
}

/**
 * A turn that was found by its words, or a conversation by those of its title.
 *
 * @example
 * for (const { key, n, snippet } of await tl.search('codeword')) console.log(key, n, snippet);
 */
export interface SearchHit {
  readonly conversationId: string;
  readonly key: string | null;
  readonly title: string;
  /** The turn; null: the words are in the title of the conversation. */
  readonly n: number | null;
  readonly snippet: string;
}

/**
 * How a conversation is made. Owner, directory and sandbox never change afterwards.
 *
 * @example
 * tl.conversation('ticket-4711', { agent: 'claude', title: 'Broken build', limitPerDay: '2 USD' });
 */
export interface ConversationSpec {
  readonly key?: string | undefined;
  /** The agent of the first turn. Later, a turn that names no agent goes to that of the turn before. */
  readonly agent?: string | undefined;
  readonly title?: string | undefined;
  readonly cwd?: string | undefined;
  /** The name, unique per owner, of a sandbox that several conversations share; left out: it gets its own. */
  readonly sandbox?: string | undefined;
  /**
   * Whether it works in its own worktree of the git repository that `cwd` is in, on its own branch. Left out: as the setting
   * `sandbox.worktree` says.
   */
  readonly worktree?: boolean | undefined;
  readonly restore?: OrUndefined<RestoreOverride> | undefined;
  /**
   * How much may be spent in it on a day (UTC): `2 USD`, `50k tokens`. It can only lower what the settings allow. Also changes the limit of
   * an existing conversation; null removes it.
   */
  readonly limitPerDay?: BudgetInput | null | undefined;
  /**
   * The model, the mode and config options for the prompts of its agent, kept through every restore. They override the agent's settings.
   * Also changes those of an existing conversation; null removes one. A turn of another agent does not get them.
   */
  readonly model?: string | null | undefined;
  readonly mode?: string | null | undefined;
  readonly config?: ChoicesChange['config'] | undefined;
}

/** The settings of a conversation that its first prompt creates. */
export type FirstSettings = Omit<ConversationSpec, 'key'>;

export interface EraseOptions {
  /** Also delete its own sandbox: the work and the sessions of its agents in it. Left out: no. */
  readonly sandbox?: boolean | undefined;
  /** With `sandbox`: also when it is a worktree with changes that nobody committed. Left out: that is refused. */
  readonly discard?: boolean | undefined;
  /** The `head` that `verify` returned: erases only if nothing was added since. For archives: an export after that is complete. */
  readonly head?: string | undefined;
}

/**
 * What remains after erasing a conversation.
 *
 * @example
 * const { remains } = await chat.erase();
 * for (const { what, where } of remains) console.log('still there:', what, where);
 */
export interface Erased {
  readonly conversationId: string;
  /** What is still there, outside of the store. */
  readonly remains: readonly Remains[];
}

/** The sandbox of the conversation, the directory that the caller named, or a session that its agent keeps elsewhere. */
export type Remains =
  | { readonly what: 'sandbox' | 'directory'; readonly where: string }
  | { readonly what: 'session'; readonly where: string; readonly agent: string; readonly sessionId: string };

/** Which conversations, and which page of them. */
export interface DirectoryOptions {
  readonly path?: string | undefined;
  readonly hidden?: boolean | undefined;
}

export interface ListOptions extends ConversationFilter {
  readonly limit?: number | undefined;
  /** The last one of the previous page. */
  readonly before?: { readonly updatedAt: number; readonly id: string } | undefined;
  /**
   * Only conversations that have used this session (the agent's id); the one that can still use it comes first. All in one page. Not
   * together with a filter.
   */
  readonly session?: string | undefined;
}

export interface AnswerOptions {
  /** How long to wait for the end of the turn: up to 60,000. Left out: does not wait. */
  readonly waitMs?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

/**
 * The answer of a turn that has ended, whatever its outcome.
 *
 * @example
 * const { turn } = await chat.send('Hello').accepted;
 * const { reply, receipt } = await tl.answerOf(turn.id, { waitMs: 60_000 });
 */
export interface TurnAnswer {
  readonly turn: PublicTurn;
  readonly reply: string;
  /** Of its last attempt; null: it ended before an agent was asked. */
  readonly receipt: PublicReceipt | null;
  /** The tools that the agent used, in the order in which they began. */
  readonly tools: readonly PublicTool[];
  /** Questions that nobody answered. */
  readonly denied: readonly Denial[];
}

/**
 * `model`, `mode`, `config`: for this turn alone. They override those of the conversation and of the agent's settings, and are reset after
 * the turn. If the agent does not have one, the turn fails, and its failure lists what the agent has.
 */
export interface SubmitOptions extends OrUndefined<Choices> {
  /**
   * Whether to create the conversation when there is none. Left out: yes, unless its name looks like an id of ours: then it is probably the id
   * of a conversation that was erased. A value: yes, with these settings, in the commit that stores the prompt. For an existing
   * conversation they mean the same as in `ensure`.
   */
  readonly create?: boolean | FirstSettings | undefined;
  readonly requestId?: string | undefined;
  readonly agent?: string | undefined;
  /**
   * The agent's id of an existing session to continue in. A session that the conversation has not used is adopted: its own turns come before
   * this one. `conflict` while another turn is open.
   */
  readonly session?: string | undefined;
  /**
   * The id for a new session, which gets the history as any new one does. `refused` when the agent issues its ids itself, or when
   * the id was used before.
   */
  readonly newSession?: string | undefined;
  readonly restore?: OrUndefined<TurnRestore> | undefined;
  readonly permissions?: PermissionMode | undefined;
  /** How long this turn may take, and how long its agent may be silent. */
  readonly limits?: OrUndefined<TimeOverride> | undefined;
  /**
   * Where the answer goes, in the caller's own words: a channel, an address. The turn is in `pending` until the caller reports the answer as
   * `delivered`, so that a program that is restarted in between can continue. Left out: the turn is never in `pending`.
   */
  readonly deliverTo?: string | undefined;
}

export interface Submitted {
  readonly turn: PublicTurn;
  /** The number of the event that accepted the turn. */
  readonly seq: number;
  /** The request id was used before: this is that turn. */
  readonly duplicate: boolean;
}

/**
 * A queued turn, and how it changes. Without a prompt and `drop`, it stays as it is.
 *
 * @example
 * const [first, second] = await chat.queue();
 * if (first && second) await chat.requeue([{ turn: second.id }, { turn: first.id, prompt: 'Then this.' }]);
 */
export interface QueueTurn {
  /** Its id. */
  readonly turn: string;
  /** The prompt to send instead. */
  readonly prompt?: Prompt | string | undefined;
  /** Cancel it. */
  readonly drop?: boolean | undefined;
}

/**
 * How an imported conversation is made.
 *
 * @example
 * await tl.import(await chat.export(), { key: 'a copy' });
 */
export interface ImportOptions {
  /** Left out: the exported one, or none. */
  readonly key?: string | undefined;
  readonly cwd?: string | undefined;
  /** For messages: the agent that continues; left out: the default one. An exported conversation names its own. */
  readonly agent?: string | undefined;
}

/** An accepted turn whose answer is not delivered yet. `seq`: the number of the event that accepted it. */
export type PendingTurn = Pick<Submitted, 'turn' | 'seq'>;

/** After the turn of this number, 100 or `limit` of them. */
export type QueuePage = Pick<TurnPage, 'after' | 'limit'>;

export interface PendingPage {
  readonly after?: string | undefined;
  readonly limit?: number | undefined;
}

export interface ForkOptions {
  /** The number of the last turn to copy; left out: the head. */
  readonly turn?: number | undefined;
  readonly key?: string | undefined;
  readonly title?: string | undefined;
  readonly cwd?: string | undefined;
}

/**
 * A whole conversation for a person or a script: turns with their answers, lineage and receipts.
 *
 * @example
 * const { turns, sessions, receipts } = await chat.show();
 * console.log(turns.length, sessions.length, receipts.at(-1)?.rung);
 */
export interface ConversationView {
  readonly conversation: PublicConversation;
  readonly turns: readonly TurnView[];
  /** In the order in which they were opened. */
  readonly sessions: readonly PublicSession[];
  readonly receipts: readonly PublicReceipt[];
}

/**
 * A turn with its reply.
 *
 * @example
 * for (const { n, state, reply } of await chat.turns()) console.log(n, state, reply);
 */
export type TurnView = PublicTurn & { readonly reply: string };

/**
 * An agent: where its program is, what it can do, and what is wrong with it.
 *
 * @example
 * for (const { name, problem, isDefault } of await tl.agents()) console.log(name, isDefault, problem ?? 'ready');
 */
export interface AgentInfo {
  readonly name: string;
  readonly adapter: string;
  readonly isDefault: boolean;
  /** Where its program was found, for people; null: it was not, or it comes with Throughline. */
  readonly where: string | null;
  /** Null: not available, `problem` says why. */
  readonly traits: AgentTraits | null;
  /** What is wrong with it, and what to do. With traits: which of its reported abilities are not used, and why. */
  readonly problem: string | null;
  /** Null: `login` was not asked for, or the agent needs no login. */
  readonly login: Login | null;
  /**
   * What it last announced of its models, modes and options, in any conversation, as the updates `config_option_update` and
   * `current_mode_update` that it sent; their current values are those of that conversation. Empty: nothing is known yet.
   */
  readonly announced: readonly Update[];
}
