import { checkOptions, type OptionNames } from '../core/input/arguments.ts';
import type { Message } from '../core/input/messages.ts';
import type { ExportedConversation } from '../core/portable.ts';
import type { PublicConversation } from '../core/public/conversation.ts';
import type { Directories } from '../core/public/files.ts';
import type { Feed } from '../core/public/live-frame.ts';
import type { PublicSandbox } from '../core/public/sandbox.ts';
import type { PublicPermission } from '../core/public/turn.ts';
import { hasEnded } from '../core/turn/turn.ts';
import { gathered, inPages } from '../flow/pages.ts';
import type { Live, LiveStreams } from '../ports/engine/live.ts';
import type { SandboxesDiskUse, SandboxPage } from '../ports/engine/sandboxes.ts';
import type {
  AgentInfo,
  AnswerOptions,
  ConversationSpec,
  DirectoryOptions,
  Engine,
  Hint,
  ImportOptions,
  ListOptions,
  PendingTurn,
  PermissionAnswer,
  PermissionFilter,
  SearchHit,
  TurnAnswer,
} from '../ports/engine.ts';
import type { Server } from '../ports/server.ts';
import type { UsageRow } from '../ports/store/usage.ts';
import type { Tasks } from '../ports/tasks.ts';
import type { ConversationTracker, Trackers } from '../ports/tracker.ts';
import { type Answer, SubmittedAnswer } from './answer.ts';
import { Answerer, checkOnPermission, type OnPermission } from './answering.ts';
import { ConversationHandle } from './conversation.ts';
import { SandboxHandle } from './sandbox.ts';

export type ConversationOptions = Omit<ConversationSpec, 'key'> & {
  /** Answers the questions of its turns. Left out: that of `open` or `connect`. */
  readonly onPermission?: OnPermission | undefined;
};

const CONVERSATION_OPTIONS: OptionNames<ConversationOptions> = {
  agent: true,
  title: true,
  cwd: true,
  sandbox: true,
  worktree: true,
  restore: true,
  limitPerDay: true,
  model: true,
  mode: true,
  config: true,
  onPermission: true,
};

const LIST_OPTIONS: OptionNames<ListOptions> = {
  limit: true,
  before: true,
  session: true,
  agent: true,
  state: true,
  since: true,
  until: true,
  pinned: true,
  putAway: true,
};

const PERMISSION_FILTER: OptionNames<PermissionFilter> = {
  conversation: true,
  turn: true,
  fromTurn: true,
  toTurn: true,
  open: true,
  after: true,
  limit: true,
};

const IMPORT_OPTIONS: OptionNames<ImportOptions> = { key: true, cwd: true, agent: true };

/** A turn that another process left may run here without the caller's knowledge, and interrupting it would lose its work. */
const CLOSE_MS = 30_000;

/**
 * Throughline for one owner, over any engine. Also runs in browsers.
 *
 * @example
 * const mine = tl.as(user);
 * for (const { key } of await mine.conversations()) console.log(key);
 * const { reply } = await mine.conversation('support', { agent: 'claude' }).ask('Hello');
 */
export class ThroughlineClient {
  readonly engine: Engine;
  /** Goals that agents work on, unattended, until their gates pass. */
  readonly tasks: Tasks;
  /** The state of the server, and who the caller is to it; null: everything runs in this process. */
  readonly server: Server | null;

  protected readonly onPermission: OnPermission | undefined;
  readonly #trackers: Trackers;
  readonly #lives: LiveStreams;
  /** Closed with this client, and with those for other owners. */
  readonly #tracking: ConversationTracker[];

  constructor(
    engine: Engine,
    tasks: Tasks,
    trackers: Trackers,
    lives: LiveStreams,
    server: Server | null,
    onPermission?: OnPermission,
    tracking: ConversationTracker[] = [],
  ) {
    this.engine = engine;
    this.tasks = tasks;
    this.server = server;
    this.onPermission = onPermission;
    this.#trackers = trackers;
    this.#lives = lives;
    this.#tracking = tracking;
  }

  /** The same for another owner; for applications with their own login. Closing either closes both. */
  as(owner: string): ThroughlineClient {
    const [engine, tasks] = [this.engine.as(owner), this.tasks.as(owner)];
    const server = this.server?.as(owner) ?? null;
    return new ThroughlineClient(engine, tasks, this.#trackers, this.#lives, server, this.onPermission, this.#tracking);
  }

  /**
   * A conversation by the caller's key. The first prompt creates it, or `ensure()`; reading never does. Refused if it exists with another
   * directory, sandbox or restore setting than these `options`.
   */
  conversation(key: string, options: ConversationOptions = {}): ConversationHandle {
    checkOptions(options, CONVERSATION_OPTIONS, 'A conversation');
    checkOnPermission(options.onPermission);
    const { onPermission = this.onPermission, ...spec } = options;
    return new ConversationHandle(this.engine, { ...spec, key }, onPermission);
  }

  /**
   * Most recently changed first, a page of 50 or of `limit`; `before` is the last one of the previous page. Filters: `agent`, `state`,
   * `since`, `until`, `pinned`, `putAway`.
   *
   *   const needsMe = await tl.conversations({ state: ['asks', 'unrestored', 'failed'], since: '2026-01-31' });
   */
  async conversations(page: ListOptions = {}): Promise<PublicConversation[]> {
    checkOptions(page, LIST_OPTIONS, 'conversations()');
    return this.engine.list(page);
  }

  /**
   * The answers that were promised to somebody (`deliverTo`) and not yet reported as delivered, oldest first. A program that died between
   * accepting and posting continues with these. Each is an answer as `send` returns it, of a turn that has ended or still runs.
   *
   *   for (const answer of await tl.pending()) {
   *     const { turn, reply } = await answer;
   *     await post(turn.options.deliverTo, reply);
   *     await answer.delivered();
   *   }
   */
  async pending(): Promise<Answer[]> {
    const pages = inPages<PendingTurn>((last) => this.engine.pending(last && { after: last.turn.id }));
    const { onPermission } = this;
    return (await gathered(pages)).map(({ turn, seq }) => {
      const asks = onPermission !== undefined && !hasEnded(turn.state);
      const answerer = asks ? new Answerer(this.engine, onPermission) : null;
      return new SubmittedAnswer(this.engine, Promise.resolve({ turn, seq, duplicate: true }), answerer);
    });
  }

  /**
   * Directories that may be chosen for a conversation (`cwd`), in `path` or in the first one that the setting `sandbox.directories` names.
   * Through a server it needs `admin`.
   */
  async directories(options: DirectoryOptions = {}): Promise<Directories> {
    checkOptions(options, { path: true, hidden: true }, 'directories()');
    return this.engine.directories(options);
  }

  /** Where the agents of this owner work: newest first, a page of 100 or of `limit`; `before` is the id of the last one of the previous page. */
  async sandboxes(page: SandboxPage = {}): Promise<PublicSandbox[]> {
    checkOptions(page, { limit: true, before: true }, 'sandboxes()');
    return this.engine.sandboxes.list(page);
  }

  /** How many sandboxes this owner has, and the bytes of those that were measured. */
  async sandboxesDiskUse(): Promise<SandboxesDiskUse> {
    return this.engine.sandboxes.diskUse();
  }

  /** A sandbox by its name or id. */
  sandbox(idOrName: string): SandboxHandle {
    return new SandboxHandle(this.engine.sandboxes, idOrName);
  }

  /** Conversations whose title has all the words, then turns whose prompt or answer does, best first. The last word may be the beginning of one. */
  async search(words: string, options: { limit?: number | undefined } = {}): Promise<SearchHit[]> {
    checkOptions(options, { limit: true }, 'search()');
    return this.engine.search(words, options);
  }

  /**
   * Creates a conversation from an export, or from messages `{ role, content }` of the AI SDK, OpenAI or Anthropic, and returns its
   * handle. The first prompt restores the context in a new session.
   *
   *   const chat = await tl.import(messages, { key: 'ticket-4711', agent: 'claude' });
   */
  async import(
    exported: ExportedConversation | readonly Message[],
    options: ImportOptions = {},
  ): Promise<ConversationHandle> {
    checkOptions(options, IMPORT_OPTIONS, 'import()');
    const { id } = await this.engine.import(exported, options);
    return ConversationHandle.byId(this.engine, id, this.onPermission);
  }

  /** Questions of agents, oldest first, a page of 100 or of `limit`. */
  async permissions(filter: PermissionFilter = {}): Promise<PublicPermission[]> {
    checkOptions(filter, PERMISSION_FILTER, 'permissions()');
    return this.engine.permissions(filter);
  }

  /** Answers a question of an agent with the id of one of its options. The first answer wins; `from` is shown with it. */
  async answer(permission: string, optionId: string, options: PermissionAnswer = {}): Promise<PublicPermission> {
    checkOptions(options, { from: true }, 'answer()');
    return this.engine.answer(permission, optionId, options);
  }

  /** The answer of a turn by its id, whatever its conversation. Throws `conflict` when it has not ended. */
  async answerOf(turn: string, options: AnswerOptions = {}): Promise<TurnAnswer> {
    checkOptions(options, { waitMs: true, signal: true }, 'answerOf()');
    return this.engine.answerOf(turn, options);
  }

  /** What was used, by day (UTC) and agent, newest day first, a page of 100 or of `limit`. */
  async usage(page: Parameters<Engine['usage']>[0] = {}): Promise<UsageRow[]> {
    checkOptions(page, { since: true, limit: true, before: true }, 'usage()');
    return this.engine.usage(page);
  }

  /** The agents, and what each can do. `login`: also starts each to see whether somebody is logged in. */
  async agents(options: { login?: boolean | undefined } = {}): Promise<AgentInfo[]> {
    checkOptions(options, { login: true }, 'agents()');
    return this.engine.agents(options);
  }

  /** Which conversations have changed, until the signal aborts: hints to read them again. */
  hints(options: { signal?: AbortSignal | undefined } = {}): AsyncIterable<Hint> {
    checkOptions(options, { signal: true }, 'hints()');
    return this.engine.hints(options);
  }

  /** Hints, the board and any conversations as one stream, over one connection, which reconnects by itself. */
  live(feeds: readonly Feed[] = []): Live {
    return this.#lives.live(this.engine.owner, feeds);
  }

  /** For programs that drive an agent themselves: the same store and rules, without an adapter. */
  tracker(): ConversationTracker {
    const tracker = this.#trackers.tracker(this.engine.owner);
    this.#tracking.push(tracker);
    return tracker;
  }

  /**
   * Starts no more turns, and waits for those that were already sent: at most `graceMs` (30 seconds, if left out). Then it interrupts
   * the rest. Queued turns stay stored; the next process of the data home runs them.
   */
  async close(options: { graceMs?: number | undefined } = {}): Promise<void> {
    checkOptions(options, { graceMs: true }, 'close()');
    const { graceMs = CLOSE_MS } = options;
    await Promise.all(this.#tracking.map((tracker) => tracker.close()));
    await this.tasks.close();
    await this.engine.close({ graceMs });
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
