import { errorOf, lostSightOf, ThroughlineError } from '../core/errors.ts';
import { checkOptions, given, type OptionNames } from '../core/input/arguments.ts';
import type { PublicConversation, PublicSummary } from '../core/public/conversation.ts';
import type { PublicEvent } from '../core/public/event.ts';
import type { PublicReceipt } from '../core/public/session.ts';
import type { PublicTurn } from '../core/public/turn.ts';
import type { Prompt } from '../core/turn/content.ts';
import type { Denial } from '../core/turn/permission.ts';
import type { Stranded } from '../core/turn/standing.ts';
import type { PermissionMode } from '../core/turn/turn.ts';
import type {
  ConversationSpec,
  ConversationView,
  Engine,
  FollowOptions,
  ForkOptions,
  SubmitOptions,
  Submitted,
} from '../ports/engine.ts';
import { Answerer, type OnPermission } from './answering.ts';

export type SendOptions = Omit<SubmitOptions, 'create'> & {
  /** Aborting it cancels the turn; events still come until the turn's end. */
  readonly signal?: AbortSignal;
  /** Answers the agent's questions. Left out: that of `open`; without any, see `permissions`. */
  readonly onPermission?: OnPermission;
};

const SEND_OPTIONS: OptionNames<SendOptions> = {
  requestId: true,
  agent: true,
  session: true,
  newSession: true,
  restore: true,
  permissions: true,
  limits: true,
  signal: true,
  onPermission: true,
};

/** The result of `ask`. */
export interface Answer {
  readonly reply: string;
  readonly turn: PublicTurn;
  /** How the context of the session was restored. */
  readonly receipt: PublicReceipt;
  /** Questions that were denied because nobody could answer, or did not in time. */
  readonly denied: readonly Denial[];
}

/** A submitted turn. Iterating it gives its events, from acceptance to end. */
export interface Sending extends AsyncIterable<PublicEvent> {
  /** The accepted turn. Rejects if it was refused. */
  readonly accepted: Promise<Submitted>;
}

/** One conversation. Nothing happens before it is first used. */
export class ConversationHandle {
  readonly #engine: Engine;
  readonly #spec: ConversationSpec;
  readonly #onPermission: OnPermission | undefined;
  /** Once it is known. */
  #id: string | null = null;

  /** `onPermission`: answers the questions of turns that name nobody; left out: the engine's settings decide. */
  constructor(engine: Engine, spec: ConversationSpec, onPermission?: OnPermission) {
    this.#engine = engine;
    this.#spec = spec;
    this.#onPermission = onPermission;
  }

  /** The conversation. Throws `not_found` when it does not exist, as all other verbs do that only read. */
  async get(): Promise<PublicConversation> {
    return this.#engine.conversation(await this.#existing());
  }

  /** Creates the conversation if it does not exist. */
  async ensure(): Promise<PublicConversation> {
    if (this.#id !== null) return this.#engine.conversation(this.#id);
    const ensured = await this.#engine.ensure(this.#spec);
    this.#id = ensured.id;
    return ensured;
  }

  /**
   * Submits a prompt at once; iterate the result for events. Creates the conversation if it does not exist. Uses the agent of the
   * handle, if one was given.
   */
  send(prompt: Prompt | string, options: SendOptions = {}): Sending {
    checkOptions(options, SEND_OPTIONS, 'Sending');
    const { signal, onPermission, ...rest } = options;
    const { answer, ...submit } = { ...rest, ...this.#whoAnswers(onPermission, rest.permissions) };
    const answerer = answer && new Answerer(this.#engine, answer);
    const accepted = this.#submit(prompt, submit, signal).then((submitted) => {
      // Also when nobody iterates the events. For an ended turn this does nothing.
      const cancel = () => void this.#engine.cancel(submitted.turn.id).catch(() => {});
      signal?.addEventListener('abort', cancel, { once: true });
      if (signal?.aborted) cancel();
      return submitted;
    });
    accepted.catch(() => {}); // reported to whoever iterates or awaits it
    // Also when nobody iterates the events. Whoever does is told what goes wrong.
    void answerer?.watch(this.#eventsOf(accepted)).catch(() => {});
    return { accepted, [Symbol.asyncIterator]: () => this.#eventsOf(accepted, answerer) };
  }

  /** Sends, waits for the end, and returns the answer. Throws a `ThroughlineError` with the failure's code. */
  async ask(prompt: Prompt | string, options: SendOptions = {}): Promise<Answer> {
    const sending = this.send(prompt, options);
    for await (const _ of sending) {
      // Wait for the end.
    }
    const { turn: accepted } = await sending.accepted;
    const turn = await this.#engine.turn(accepted.id);
    if (turn.state !== 'completed') {
      throw errorOf(turn.failure ?? { code: 'interrupted', message: `The turn ended as ${turn.state}.` });
    }
    const { receipt, ...answer } = await this.#engine.answerOf(turn.id);
    if (receipt === null) throw new Error('A completed turn has no receipt.');
    return { ...answer, receipt };
  }

  /** Warms up the agent of the handle, if one was given. */
  async warm(options: Parameters<Engine['warm']>[1] = {}): Promise<PublicReceipt | null> {
    return this.#engine.warm(await this.#existing(), { ...this.#named(), ...options });
  }

  async summary(): Promise<PublicSummary> {
    return this.#engine.summary(await this.#existing());
  }

  async show(): Promise<ConversationView> {
    return this.#engine.show(await this.#existing());
  }

  async *follow(options: FollowOptions = {}): AsyncGenerator<PublicEvent> {
    yield* this.#engine.follow(await this.#existing(), options);
  }

  /** A new conversation with the records up to a turn; the parent's session is never used in it. */
  async fork(options: ForkOptions = {}): Promise<ConversationHandle> {
    const fork = await this.#engine.fork(await this.#existing(), options);
    const handle = new ConversationHandle(this.#engine, this.#named(), this.#onPermission);
    handle.#id = fork.id;
    return handle;
  }

  async #submit(prompt: Prompt | string, options: SubmitOptions, signal?: AbortSignal): Promise<Submitted> {
    // Where more is given than its key, the conversation is created with that first.
    const isPlain = Object.keys(given(this.#spec)).every((name) => name === 'key');
    const at = this.#id ?? (isPlain ? this.#key() : (await this.ensure()).id);
    if (signal?.aborted) throw new ThroughlineError('cancelled', 'Cancelled before it was submitted.');
    const create = this.#id === null;
    const submitted = await this.#engine.submit(at, prompt, { ...this.#named(), ...options, create });
    this.#id = submitted.turn.conversationId;
    return submitted;
  }

  /** The conversation, if it exists, by a name to read it by. What exists otherwise than it should is refused (R7). */
  async #existing(): Promise<string> {
    if (this.#id !== null) return this.#id;
    const { cwd, sandbox, restore } = this.#spec;
    const pins = given({ cwd, sandbox, restore });
    if (Object.keys(pins).length === 0) return this.#key();
    const { id } = await this.#engine.conversation(this.#key());
    await this.#engine.ensure({ key: this.#key(), ...pins });
    this.#id = id;
    return id;
  }

  #key(): string {
    return this.#spec.key ?? '';
  }

  #named(): { agent?: string } {
    return this.#spec.agent === undefined ? {} : { agent: this.#spec.agent };
  }

  /** What the call says beats what `open` was told (R7). */
  #whoAnswers(named: OnPermission | undefined, mode: PermissionMode | undefined) {
    if (named !== undefined && mode === 'deny') {
      throw new ThroughlineError(
        'invalid',
        'With permissions "deny" nobody is asked, so onPermission would never be called.',
        {
          hint: 'Leave one of them out.',
        },
      );
    }
    const answer = mode === 'deny' ? undefined : (named ?? this.#onPermission);
    const permissions = mode ?? (answer === undefined ? undefined : 'ask');
    return { answer, ...given({ permissions }) };
  }

  async *#eventsOf(accepted: Promise<Submitted>, answerer?: Answerer): AsyncGenerator<PublicEvent> {
    const { turn, seq } = await accepted;
    const over = new AbortController();
    const found: { stranded: Stranded | null } = { stranded: null };
    const stopLooking = this.#whenStranded(turn, (stranded) => {
      found.stranded = stranded;
      over.abort();
    });
    try {
      for await (const event of this.#engine.follow(turn.conversationId, { after: seq - 1, signal: over.signal })) {
        if (event.turnId !== turn.id) continue;
        yield event;
        if (event.kind === 'turn.ended') break;
      }
      if (answerer?.fault) throw answerer.fault.error;
    } catch (error) {
      throw error instanceof ThroughlineError && error.code === 'unreachable' ? lostSightOf(error, turn) : error;
    } finally {
      stopLooking();
      over.abort();
    }
    if (found.stranded === null) return;
    const { message, hint } = found.stranded;
    throw lostSightOf(new ThroughlineError('unreachable', message), turn, hint);
  }

  /** The turn may run at another data home, whose processes end while we wait. Calls back when nobody runs it there any more. */
  #whenStranded({ id }: PublicTurn, onStranded: (stranded: Stranded) => void): () => void {
    const look = async () => {
      // Whatever keeps us from looking, the stream of events meets it too.
      const stranded = await this.#engine.turn(id).then(
        (turn) => turn.stranded,
        () => null,
      );
      if (stranded?.reason === 'other_home') onStranded(stranded);
    };
    const timer = setInterval(() => void look(), LOOK_MS);
    // Whoever asks for no more events lets the process end. In browsers a timer is a number.
    if (typeof timer === 'object') timer.unref();
    return () => clearInterval(timer);
  }
}

/** How often a turn that is waited for is looked at. */
const LOOK_MS = 5_000;
