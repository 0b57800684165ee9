import type { Changes, Keep, Kept } from '../core/changes.ts';
import type { Arrangement } from '../core/conversation.ts';
import { hasCode, noSuchTurn, ThroughlineError } from '../core/errors.ts';
import type { ChainCheck } from '../core/event.ts';
import { checkOptions, checkSignal, given, type OptionNames } from '../core/input/arguments.ts';
import type { ExportedConversation } from '../core/portable.ts';
import type { PublicConversation, PublicSummary } from '../core/public/conversation.ts';
import type { PublicEvent } from '../core/public/event.ts';
import type { Files } from '../core/public/files.ts';
import type { PublicSandboxUse } from '../core/public/sandbox.ts';
import type { PublicReceipt, PublicRestore, PublicSession } from '../core/public/session.ts';
import type { PublicTold, PublicTurn, TurnOutline } from '../core/public/turn.ts';
import { type Prompt, parsePrompt } from '../core/turn/content.ts';
import type { TurnRecord } from '../core/turn/record.ts';
import { hasEnded, type PermissionMode } from '../core/turn/turn.ts';
import { gathered, inPages } from '../flow/pages.ts';
import type {
  ConversationSpec,
  ConversationView,
  Engine,
  Erased,
  EraseOptions,
  EventPage,
  FollowOptions,
  ForkOptions,
  QueuePage,
  QueueTurn,
  SubmitOptions,
  Submitted,
  TurnPage,
  TurnView,
} from '../ports/engine.ts';
import type { Requeued } from '../ports/store/turns.ts';
import { type Answer, SubmittedAnswer, type TurnResult } from './answer.ts';
import { Answerer, checkOnPermission, type OnPermission } from './answering.ts';

/**
 * How one prompt is sent. Everything is optional.
 *
 * @example
 * await chat.ask('Tidy up.', { requestId: 'tidy-1', agent: 'codex', signal: AbortSignal.timeout(60_000) });
 */
export type SendOptions = Omit<SubmitOptions, 'create'> & {
  /** Aborting it cancels the turn. The answer then rejects with a `TurnError` of code `cancelled`, which has the reply so far. */
  readonly signal?: AbortSignal | undefined;
  /** Answers the agent's questions. Left out: that of the handle or of `open`; without any, see `permissions`. */
  readonly onPermission?: OnPermission | undefined;
};

const SEND_OPTIONS: OptionNames<SendOptions> = {
  requestId: true,
  agent: true,
  session: true,
  newSession: true,
  restore: true,
  permissions: true,
  limits: true,
  deliverTo: true,
  model: true,
  mode: true,
  config: true,
  signal: true,
  onPermission: true,
};

export type RetryOptions = Pick<SendOptions, 'requestId' | 'signal' | 'onPermission'>;

const RETRY_OPTIONS: OptionNames<RetryOptions> = { requestId: true, signal: true, onPermission: true };
const FORK_OPTIONS: OptionNames<ForkOptions> = { turn: true, key: true, title: true, cwd: true };
const FOLLOW_OPTIONS: OptionNames<FollowOptions> = { after: true, log: true, signal: true };
const TURN_PAGE: OptionNames<TurnPage> = { after: true, before: true, limit: true };
const EVENT_PAGE: OptionNames<EventPage> = { before: true, turn: true, log: true, limit: true };

/**
 * One turn of a conversation: itself, its id, or its number.
 *
 * @example
 * await chat.cancel(7); // its number, its id, or the turn itself
 */
export type TurnName = string | number | Pick<PublicTurn, 'id'>;

/**
 * One conversation. Nothing happens before it is first used.
 *
 * @example
 * const notes = tl.conversation('notes');
 * const { reply } = await notes.ask('What is left to do?');
 * const other = await notes.fork({ turn: 3, key: 'notes, another way' });
 */
export class ConversationHandle {
  readonly #engine: Engine;
  readonly #spec: ConversationSpec;
  readonly #onPermission: OnPermission | undefined;
  /** Null: not known yet. */
  #id: string | null = null;
  /** Resolves when all earlier prompts of this handle are accepted or refused. */
  #before: Promise<unknown> = Promise.resolve();

  /** `onPermission`: answers the questions of turns without a function of their own; left out: the engine's settings decide. */
  constructor(engine: Engine, spec: ConversationSpec, onPermission?: OnPermission) {
    this.#engine = engine;
    this.#spec = spec;
    this.#onPermission = onPermission;
  }

  /** The handle of an existing conversation. */
  static byId(
    engine: Engine,
    id: string,
    onPermission?: OnPermission,
    spec: ConversationSpec = {},
  ): ConversationHandle {
    const handle = new ConversationHandle(engine, spec, onPermission);
    handle.#id = id;
    return handle;
  }

  /** The conversation. Throws `not_found` when it does not exist, as all verbs that only read do. */
  async get(): Promise<PublicConversation> {
    return this.#engine.conversation(await this.#existing());
  }

  /** Creates the conversation if it does not exist. */
  async ensure(): Promise<PublicConversation> {
    if (this.#id !== null) {
      try {
        return await this.#engine.conversation(this.#id);
      } catch (error) {
        this.#forgetErased(error);
      }
    }
    const ensured = await this.#engine.ensure(this.#spec);
    this.#id = ensured.id;
    return ensured;
  }

  /**
   * Submits a prompt at once. Await the answer, or read it while it arrives. Creates the conversation if it does not exist. Uses the
   * agent of the handle, if one was given.
   */
  send(prompt: Prompt | string, options: SendOptions = {}): Answer {
    checkOptions(options, SEND_OPTIONS, 'send()');
    const { signal, onPermission, ...rest } = options;
    const { answer, ...submit } = { ...rest, ...this.#whoAnswers(onPermission, rest.permissions) };
    const accepted = this.#inOrder(() => this.#submit(prompt, submit, signal));
    return this.#answerTo(accepted, answer, signal);
  }

  /**
   * Sends the prompt of an ended turn again, as a new turn; left out: of the last one. What the first one did is not undone, and tools may
   * run again. Questions are handled as in the first one, unless a function answers them. Returns an answer as `send` does.
   */
  retry(turn?: TurnName, options: RetryOptions = {}): Answer {
    checkOptions(options, RETRY_OPTIONS, 'retry()');
    const { signal, onPermission = this.#onPermission, requestId } = options;
    checkOnPermission(onPermission);
    const submit = async () => {
      checkSignal(signal);
      const id = await (turn === undefined ? this.#last() : this.#idOf(turn));
      refuseAborted(signal);
      const permissions = onPermission === undefined ? undefined : 'ask';
      return this.#engine.retry(id, given({ requestId, permissions }));
    };
    return this.#answerTo(this.#inOrder(submit), onPermission, signal);
  }

  /** Sends, and waits for the answer: the same as `await send()`. Throws a `TurnError` when the turn does not complete. */
  async ask(prompt: Prompt | string, options: SendOptions = {}): Promise<TurnResult> {
    return this.send(prompt, options);
  }

  /** Warms up the agent of the handle, if one was given. */
  async warm(options: Parameters<Engine['warm']>[1] = {}): Promise<PublicReceipt | null> {
    checkOptions(options, { agent: true, restore: true }, 'warm()');
    return this.#engine.warm(await this.#existing(), { ...this.#named(), ...options });
  }

  /** Ends its agents' processes, and with them a running turn. Returns the sessions that had a process. */
  async kill(): Promise<PublicSession[]> {
    return this.#engine.kill(await this.#existing());
  }

  /** What its agent changed in its directory. Throws `not_found` if that is not in a git repository. */
  async changes(): Promise<Changes> {
    return this.#engine.changes(await this.#existing());
  }

  /** Where it works: its owner, its sandbox, itself, and the session that it used last. */
  async sandbox(): Promise<PublicSandboxUse> {
    return this.#engine.sandboxes.of(await this.#existing());
  }

  /** Commits what the agent changed in its worktree, or merges its commits into the directory that was given, or both. */
  async keepChanges(keep: Keep): Promise<Kept> {
    return this.#engine.keepChanges(await this.#existing(), keep);
  }

  /** Discards the uncommitted changes in its worktree. */
  async discardChanges(): Promise<void> {
    return this.#engine.discardChanges(await this.#existing());
  }

  /** Files and folders in its directory whose paths contain `match`, for naming them in a prompt. */
  async files(options: { match?: string | undefined } = {}): Promise<Files> {
    checkOptions(options, { match: true }, 'files()');
    return this.#engine.files(await this.#existing(), options);
  }

  async summary(): Promise<PublicSummary> {
    return this.#engine.summary(await this.#existing());
  }

  async show(): Promise<ConversationView> {
    return this.#engine.show(await this.#existing());
  }

  async *follow(options: FollowOptions = {}): AsyncGenerator<PublicEvent> {
    checkOptions(options, FOLLOW_OPTIONS, 'follow()');
    yield* this.#engine.follow(await this.#existing(), options);
  }

  /**
   * Stored events backwards, in rising order, a page of 100 or of `limit`: the last ones before the event `before`. Continue before the
   * first one until a page is empty.
   */
  async events(page: EventPage = {}): Promise<PublicEvent[]> {
    checkOptions(page, EVENT_PAGE, 'events()');
    return this.#engine.events(await this.#existing(), page);
  }

  /**
   * Its turns with their answers, by number, a page of 100 or of `limit`: continue after the last one until a page is empty. The last
   * ones are `turns({ before: 'end' })`, and those before a page are `turns({ before: page[0].n })`.
   */
  async turns(page: TurnPage = {}): Promise<TurnView[]> {
    checkOptions(page, TURN_PAGE, 'turns()');
    return this.#engine.turns(await this.#existing(), page);
  }

  /** Its turns without their texts, in pages as `turns`: for drawing a long conversation. */
  async outline(page: TurnPage = {}): Promise<TurnOutline[]> {
    checkOptions(page, TURN_PAGE, 'outline()');
    return this.#engine.outline(await this.#existing(), page);
  }

  /** The records of its history: the results of all turns that were sent, with their tools. In pages as `turns`. */
  async records(page: TurnPage = {}): Promise<TurnRecord[]> {
    checkOptions(page, TURN_PAGE, 'records()');
    return this.#engine.records(await this.#existing(), page);
  }

  /**
   * Asks a turn to stop; left out: all open turns. Returns them as they are after asking: a running one ends a little later. An ended
   * turn does not change.
   */
  async cancel(turn?: TurnName): Promise<PublicTurn[]> {
    const ids = turn === undefined ? await this.#open() : [await this.#idOf(turn)];
    const asked: PublicTurn[] = [];
    // The last one first: otherwise the next turn would start as soon as the turn before it has ended.
    for (const id of ids.toReversed()) asked.unshift(await this.#engine.cancel(id));
    return asked;
  }

  /** Its queued turns, which have not begun, in the order in which they will run, a page of 100 or of `limit`. */
  async queue(page: QueuePage = {}): Promise<PublicTurn[]> {
    return this.#engine.queue(await this.#existing(), page);
  }

  /**
   * Edits, moves and drops queued turns in one step: name every queued turn, in the wanted order. One that is edited, or moved behind a
   * later one, ends as cancelled, and a new turn with its options takes its place. `conflict` when other turns are queued than
   * those named: one has begun meanwhile. With the same `requestId` it may be repeated.
   */
  async requeue(turns: readonly QueueTurn[], options: { requestId?: string | undefined } = {}): Promise<Requeued> {
    checkOptions(options, { requestId: true }, 'requeue()');
    return this.#engine.requeue(await this.#existing(), turns, options);
  }

  /**
   * Exactly what the session of a turn was told with its prompt, word for word, with its hashes; left out: of the last turn that has
   * ended. `attempt`: in this attempt; left out: in the last one.
   */
  async told(turn?: TurnName, options: { attempt?: number | undefined } = {}): Promise<PublicTold> {
    checkOptions(options, { attempt: true }, 'told()');
    return this.#engine.told(await this.#idOf(turn ?? (await this.#head())), options);
  }

  /** Most recently used first. */
  async sessions(): Promise<PublicSession[]> {
    return this.#engine.sessions(await this.#existing());
  }

  /** How the context of its sessions was restored, oldest first. */
  async receipts(): Promise<PublicReceipt[]> {
    return this.#engine.receipts(await this.#existing());
  }

  /** The receipts of a page of turns with their places, also those of warm-ups. In pages as `turns`. */
  async restores(page: TurnPage = {}): Promise<PublicRestore[]> {
    checkOptions(page, TURN_PAGE, 'restores()');
    return this.#engine.restores(await this.#existing(), page);
  }

  /**
   * Moves it to the place of this data home, or of the server, when its own place is gone. The files of its work do not move with it.
   * Throws `conflict` while a process runs at its own place.
   */
  async move(): Promise<PublicConversation> {
    return this.#engine.move(await this.#existing());
  }

  async rename(title: string): Promise<PublicConversation> {
    return this.#engine.rename(await this.#existing(), title);
  }

  /** Pins it or puts it away, or undoes that. This only changes what lists show; a new prompt brings it back. */
  async arrange(change: Arrangement): Promise<PublicConversation> {
    checkOptions(change, { pinned: true, putAway: true }, 'arrange()');
    return this.#engine.arrange(await this.#existing(), change);
  }

  /** Deletes all that was said in it; this cannot be undone. `conflict` while a turn is open. */
  async erase(options: EraseOptions = {}): Promise<Erased> {
    checkOptions(options, { sandbox: true, discard: true, head: true }, 'erase()');
    const erased = await this.#engine.erase(await this.#existing(), options);
    // Its key is free again. Without a key, every verb throws `not_found` from now on.
    if (this.#spec.key !== undefined) this.#id = null;
    return erased;
  }

  /** As one JSON value, for `import`. */
  async export(): Promise<ExportedConversation> {
    return this.#engine.export(await this.#existing());
  }

  /** Checks that no event of it was changed. */
  async verify(options: { head?: string | undefined } = {}): Promise<ChainCheck> {
    checkOptions(options, { head: true }, 'verify()');
    return this.#engine.verify(await this.#existing(), options);
  }

  /** A new conversation with the records up to a turn; the parent's session is never used in it. */
  async fork(options: ForkOptions = {}): Promise<ConversationHandle> {
    checkOptions(options, FORK_OPTIONS, 'fork()');
    const { id } = await this.#engine.fork(await this.#existing(), options);
    return ConversationHandle.byId(this.#engine, id, this.#onPermission, this.#named());
  }

  #answerTo(submitted: Promise<Submitted>, answer: OnPermission | undefined, signal: AbortSignal | undefined): Answer {
    const answerer = answer === undefined ? null : new Answerer(this.#engine, answer);
    return new SubmittedAnswer(this.#engine, submitted, answerer, signal);
  }

  /** Prompts that are sent one after the other are accepted in this order, also by a server. */
  #inOrder(submit: () => Promise<Submitted>): Promise<Submitted> {
    const accepted = this.#before.then(submit);
    this.#before = accepted.catch(() => {});
    return accepted;
  }

  async #submit(prompt: Prompt | string, options: SubmitOptions, signal?: AbortSignal): Promise<Submitted> {
    checkSignal(signal);
    refuseAborted(signal);
    const before = this.#id;
    const { key, ...settings } = this.#spec;
    const isPlain = this.#isCreatedByPrompt(options);
    const at = this.#id ?? (isPlain || key !== undefined ? this.#key() : await this.#createdFor(prompt));
    refuseAborted(signal);
    const create = this.#id === null && (isPlain || settings);
    try {
      const submitted = await this.#engine.submit(at, prompt, { ...this.#named(), ...options, create });
      this.#id = submitted.turn.conversationId;
      return submitted;
    } catch (error) {
      if (before === null) throw error;
      this.#forgetErased(error);
      return this.#submit(prompt, options, signal);
    }
  }

  /** Another handle or process may have erased it: then its key is free again. Throws any other error. */
  #forgetErased(error: unknown): void {
    const isErased = hasCode(error, 'not_found') && this.#spec.key !== undefined;
    if (!isErased) throw error;
    this.#id = null;
  }

  /** The key or the id of the conversation, for reading it. Refused if it exists with other settings than those of the handle (R7). */
  async #existing(): Promise<string> {
    const { cwd, sandbox, worktree, restore, key } = this.#spec;
    const pins = given({ cwd, sandbox, worktree, restore });
    // By its key: somebody else may erase the conversation with this id, and create another one with the key.
    if (Object.keys(pins).length === 0 && key !== undefined) return key;
    if (this.#id !== null) return this.#id;
    const { id } = await this.#engine.conversation(this.#key());
    await this.#engine.ensure({ key: this.#key(), ...pins });
    this.#id = id;
    return id;
  }

  #key(): string {
    return this.#spec.key ?? '';
  }

  /** Whether a key and an agent are all that the first prompt creates the conversation with. */
  #isCreatedByPrompt({ agent }: SubmitOptions): boolean {
    const byPrompt = new Set(['key', ...(agent === undefined ? ['agent'] : [])]);
    return Object.keys(given(this.#spec)).every((name) => byPrompt.has(name));
  }

  /** A prompt that cannot be sent must not leave an empty conversation behind. */
  async #createdFor(prompt: Prompt | string): Promise<string> {
    parsePrompt(prompt);
    return (await this.ensure()).id;
  }

  /** The id of one of its turns. Throws `not_found` for a turn of another conversation. */
  async #idOf(turn: TurnName): Promise<string> {
    const at = await this.#existing();
    if (typeof turn === 'number') {
      const after = Number.isSafeInteger(turn) && turn > 0 ? turn - 1 : 0;
      const [found] = await this.#engine.turns(at, { after, limit: 1 });
      if (found?.n !== turn) throw noSuchTurn(String(turn));
      return found.id;
    }
    const id = typeof turn === 'string' ? turn : turn.id;
    const [{ conversationId }, own] = await Promise.all([this.#engine.turn(id), this.#engine.conversation(at)]);
    if (conversationId !== own.id) throw noSuchTurn(id);
    return id;
  }

  /** The number of the last turn of its history. */
  async #head(): Promise<number> {
    const { head } = await this.#engine.conversation(await this.#existing());
    if (head > 0) return head;
    throw new ThroughlineError('not_found', 'The conversation has no turn that was sent and has ended.');
  }

  /** The id of its last turn, whether it was sent or not. */
  async #last(): Promise<string> {
    const [last] = await this.#engine.turns(await this.#existing(), { before: 'end', limit: 1 });
    if (last === undefined) throw new ThroughlineError('not_found', 'The conversation has no turn yet.');
    return last.id;
  }

  /** The ids of its open turns, which are all after its head. */
  async #open(): Promise<string[]> {
    const { id, head } = await this.#engine.conversation(await this.#existing());
    const later = inPages<PublicTurn>((last) => this.#engine.turns(id, { after: last?.n ?? head }));
    return (await gathered(later)).filter(({ state }) => !hasEnded(state)).map((turn) => turn.id);
  }

  #named(): { agent?: string } {
    return this.#spec.agent === undefined ? {} : { agent: this.#spec.agent };
  }

  /** The options of the call beat those of the handle and of `open` (R7). */
  #whoAnswers(named: OnPermission | undefined, mode: PermissionMode | undefined) {
    checkOnPermission(named);
    if (named !== undefined && mode === 'deny') {
      const message = 'With permissions "deny" nobody is asked, so onPermission would never be called.';
      throw new ThroughlineError('invalid', message, { hint: 'Leave one of them out.' });
    }
    const answer = mode === 'deny' ? undefined : (named ?? this.#onPermission);
    const permissions = mode ?? (answer === undefined ? undefined : 'ask');
    return { answer, ...given({ permissions }) };
  }
}

function refuseAborted(signal: AbortSignal | undefined): void {
  if (!signal?.aborted) return;
  throw new ThroughlineError('cancelled', 'Cancelled before it was submitted.', { cause: signal.reason });
}
