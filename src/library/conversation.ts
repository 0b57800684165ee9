import type { Prompt } from '../core/content.ts';
import { ThroughlineError } from '../core/errors.ts';
import { checkOptions, type OptionNames } from '../core/known-options.ts';
import type { PublicConversation, PublicSummary } from '../core/public/conversation.ts';
import type { PublicEvent } from '../core/public/event.ts';
import type { PublicReceipt } from '../core/public/session.ts';
import type { PublicTurn } from '../core/public/turn.ts';
import type {
  ConversationSpec,
  ConversationView,
  Engine,
  ForkOptions,
  SubmitOptions,
  Submitted,
} from '../ports/engine.ts';

export type SendOptions = SubmitOptions & {
  /** Aborting it cancels the turn; the events go on to the turn's end. */
  readonly signal?: AbortSignal;
};

const SEND_OPTIONS: OptionNames<SendOptions> = {
  requestId: true,
  agent: true,
  session: true,
  restore: true,
  permissions: true,
  signal: true,
};

/** What `ask` comes back with. */
export interface Answer {
  readonly reply: string;
  readonly turn: PublicTurn;
  /** How the session was given its context. */
  readonly receipt: PublicReceipt;
}

/** A turn that was sent: iterate it for its events, from its acceptance to its end. */
export interface Sending extends AsyncIterable<PublicEvent> {
  /** The turn as it was accepted. Rejects when it was not. */
  readonly accepted: Promise<Submitted>;
}

/** One conversation. Nothing happens before it is first used. */
export class ConversationHandle {
  readonly #engine: Engine;
  readonly #spec: ConversationSpec;
  #ensured: Promise<PublicConversation> | null = null;

  constructor(engine: Engine, spec: ConversationSpec) {
    this.#engine = engine;
    this.#spec = spec;
  }

  /** Makes the conversation if there is none; its id, head and settings. */
  async get(): Promise<PublicConversation> {
    const { id } = await this.#ensure();
    return this.#engine.conversation(id);
  }

  /** Submits a prompt at once; iterating shows what becomes of it. An agent named for the handle is named for the turn. */
  send(prompt: Prompt | string, options: SendOptions = {}): Sending {
    checkOptions(options, SEND_OPTIONS, 'Sending');
    const { signal, ...submit } = options;
    const accepted = this.#ensure().then(async ({ id }) => {
      if (signal?.aborted) throw new ThroughlineError('cancelled', 'Cancelled before it was submitted.');
      const submitted = await this.#engine.submit(id, prompt, { ...this.#named(), ...submit });
      // Also when nobody looks at the events. An ended turn needs no cancelling.
      const cancel = () => void this.#engine.cancel(submitted.turn.id).catch(() => {});
      signal?.addEventListener('abort', cancel, { once: true });
      if (signal?.aborted) cancel();
      return submitted;
    });
    accepted.catch(() => {}); // whoever iterates or awaits hears of it
    return { accepted, [Symbol.asyncIterator]: () => this.#eventsOf(accepted) };
  }

  /** Sends, waits for the end, and gives the answer. Throws a `ThroughlineError` with the failure's code when it fails. */
  async ask(prompt: Prompt | string, options: SendOptions = {}): Promise<Answer> {
    const sending = this.send(prompt, options);
    for await (const _ of sending) {
      // Only the end matters here.
    }
    const { turn: accepted } = await sending.accepted;
    const turn = await this.#engine.turn(accepted.id);
    if (turn.state !== 'completed') {
      const { code, message, hint } = turn.failure ?? {
        code: 'interrupted',
        message: `The turn ended as ${turn.state}.`,
      };
      throw new ThroughlineError(code, message, hint === undefined ? {} : { hint });
    }
    return this.#engine.answerOf(turn.id);
  }

  /** An agent named for the handle is the one that is warmed up. */
  async warm(options: Parameters<Engine['warm']>[1] = {}): Promise<PublicReceipt | null> {
    return this.#engine.warm((await this.#ensure()).id, { ...this.#named(), ...options });
  }

  async summary(): Promise<PublicSummary> {
    return this.#engine.summary((await this.#ensure()).id);
  }

  async show(): Promise<ConversationView> {
    return this.#engine.show((await this.#ensure()).id);
  }

  async *follow(options: { after?: number; signal?: AbortSignal } = {}): AsyncGenerator<PublicEvent> {
    yield* this.#engine.follow((await this.#ensure()).id, options);
  }

  /** A new conversation with the records up to a turn; the parent's session is never used in it. */
  async fork(options: ForkOptions = {}): Promise<ConversationHandle> {
    const fork = await this.#engine.fork((await this.#ensure()).id, options);
    const handle = new ConversationHandle(this.#engine, this.#named());
    handle.#ensured = Promise.resolve(fork);
    return handle;
  }

  #ensure(): Promise<PublicConversation> {
    this.#ensured ??= this.#engine.ensure(this.#spec).catch((error: unknown) => {
      this.#ensured = null;
      throw error;
    });
    return this.#ensured;
  }

  #named(): { agent?: string } {
    return this.#spec.agent === undefined ? {} : { agent: this.#spec.agent };
  }

  async *#eventsOf(accepted: Promise<Submitted>): AsyncGenerator<PublicEvent> {
    const { turn, seq } = await accepted;
    const over = new AbortController();
    try {
      for await (const event of this.#engine.follow(turn.conversationId, { after: seq - 1, signal: over.signal })) {
        if (event.turnId !== turn.id) continue;
        yield event;
        if (event.kind === 'turn.ended') return;
      }
    } finally {
      over.abort();
    }
  }
}
