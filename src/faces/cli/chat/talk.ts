import { setTimeout as delay } from 'node:timers/promises';
import { hasCode, type ThroughlineError } from '../../../core/errors.ts';
import { given } from '../../../core/input/arguments.ts';
import type { PublicConversation } from '../../../core/public/conversation.ts';
import type { PublicEvent } from '../../../core/public/event.ts';
import type { PublicTurn } from '../../../core/public/turn.ts';
import type { ConversationSpec, Engine, SubmitOptions } from '../../../ports/engine.ts';
import type { ChatDesk } from '../cli.ts';
import { orNull } from '../input.ts';

/** Opens an engine. `onTrouble` is called while it waits for its server or its storage. */
export type OpenDesk = (onTrouble: (trouble: ThroughlineError) => void) => Promise<ChatDesk>;

interface TalkListener {
  event(event: PublicEvent): void;
  /** Something that the person should know. */
  note(text: string): void;
  /** What the engine waits for; null: it does not wait any more. */
  trouble(what: string | null): void;
  /** The conversation cannot be followed any more. */
  failed(error: unknown): void;
}

/** How long to wait before the server is tried again, after the client has given up. */
const AGAIN_MS = 1_000;
/** When no trouble was reported for so long, the storage can be written again. */
const QUIET_MS = 5_000;
/** How many events before the last one are read at most, to show what an open turn has said so far. */
const LOOK_BACK = 5_000;

/**
 * One conversation with an engine, here or at a server. Every event comes once and in order, also after the server was away or was
 * started again. A prompt that was given is accepted once, however often it has to be sent.
 */
export class Talk {
  readonly #open: OpenDesk;
  readonly #listener: TalkListener;
  #desk: ChatDesk;
  #place: Place = { conversation: null, spec: {} };
  /** Conversations that the person has left. */
  readonly #left = new Set<Place>();
  /** Prompts that were given and are not accepted yet, in their order. */
  readonly #unsent = new Map<symbol, string>();
  #following = new AbortController();
  #reconnecting: Promise<void> | null = null;
  #isAway = false;
  #quiet: NodeJS.Timeout | undefined;
  #closed = false;
  /** Prompts are accepted in the order in which they were given. */
  #submitting: Promise<unknown> = Promise.resolve();

  private constructor(desk: ChatDesk, open: OpenDesk, listener: TalkListener) {
    this.#desk = desk;
    this.#open = open;
    this.#listener = listener;
  }

  static async open(open: OpenDesk, listener: TalkListener): Promise<Talk> {
    let talk: Talk | null = null;
    const desk = await open((trouble) => talk?.onTrouble(trouble));
    talk = new Talk(desk, open, listener);
    return talk;
  }

  get engine(): Engine {
    return this.#desk.engine;
  }

  /** A server runs the turns, and continues when this process ends. */
  get served(): boolean {
    return this.#desk.served;
  }

  get home(): string {
    return this.#desk.home;
  }

  /** Null: its first prompt creates it. */
  get conversation(): PublicConversation | null {
    return this.#place.conversation;
  }

  get unsent(): readonly string[] {
    return [...this.#unsent.values()];
  }

  /** Resolves when every prompt that was given has been accepted or refused. */
  async submitted(): Promise<void> {
    await this.#submitting;
  }

  /** Key or id, for commands; null: there is none yet and it gets no key. */
  get name(): string | null {
    const { conversation, spec } = this.#place;
    return conversation?.key ?? conversation?.id ?? spec.key ?? null;
  }

  /** Leaves the conversation before, if there was one. */
  begin(spec: ConversationSpec): void {
    this.#following.abort();
    this.#left.add(this.#place);
    this.#place = { conversation: null, spec };
  }

  /** Follows an existing conversation from now on. Open turns are shown from their beginning, if that is not too far back. */
  async enter(conversation: PublicConversation): Promise<void> {
    this.#following.abort();
    this.#left.add(this.#place);
    this.#place = { conversation, spec: {} };
    const { id, head, lastSeq, logId, open } = conversation;
    const turns = open === 0 ? [] : await this.engine.turns(id, { after: head });
    const ids = new Set(turns.map((turn) => turn.id));
    const after = open === 0 ? lastSeq : Math.max(0, lastSeq - LOOK_BACK);
    // The stored events of their beginning may be too far back.
    for (const event of turns.flatMap(beginningOf)) this.#listener.event(event);
    let isCut = after > 0;
    this.#follow({ id, after, log: logId }, ({ seq, turnId, kind }) => {
      const isOfOpen = ids.has(turnId ?? '');
      if (isOfOpen && (kind === 'turn.queued' || (kind === 'turn.started' && seq <= lastSeq))) {
        isCut = false;
        return false;
      }
      if (isOfOpen && isCut && kind === 'turn.update') {
        isCut = false;
        this.#listener.note('The beginning of this answer is not shown here.');
      }
      return seq > lastSeq || isOfOpen;
    });
  }

  /** The open turn of each conversation that the person has left. */
  async openElsewhere(): Promise<OpenElsewhere[]> {
    const here = this.conversation?.id;
    const left = new Set([...this.#left].map(({ conversation }) => conversation?.id ?? here));
    const found = [...left].map((id) => (id === undefined || id === here ? null : this.#openIn(id)));
    return (await Promise.all(found)).filter((one) => one !== null);
  }

  async #openIn(id: string): Promise<OpenElsewhere | null> {
    const found = await orNull(this.engine.conversation(id)); // it may have been erased
    return found === null || found.open === 0 ? null : { name: found.key ?? id, n: found.head + 1 };
  }

  /** Resolves when the prompt is accepted, by the conversation in which it was given. Throws when it is refused. */
  submit(prompt: string, options: SubmitOptions): Promise<void> {
    const place = this.#place;
    const mark = Symbol('prompt');
    this.#unsent.set(mark, prompt);
    const submitted = this.#submitting
      .then(() => this.#accepted(place, prompt, options))
      .finally(() => this.#unsent.delete(mark));
    this.#submitting = submitted.catch(() => {});
    return submitted;
  }

  async close(graceMs?: number): Promise<void> {
    this.#closed = true;
    this.#following.abort();
    await this.engine.close(given({ graceMs }));
  }

  /** Called when the engine waits for its server, and repeatedly while its storage cannot be written. */
  onTrouble(trouble: ThroughlineError): void {
    this.#listener.trouble(trouble.message);
    clearTimeout(this.#quiet);
    if (!this.served) this.#quiet = setTimeout(() => this.#listener.trouble(null), QUIET_MS).unref();
    if (!this.served || this.#isAway) return;
    this.#isAway = true;
    const { engine } = this;
    // The client repeats this request until the server answers. If it gives up, `#followed` gets the same error and reconnects.
    const { conversation } = this.#place;
    const answered = conversation === null ? engine.list({ limit: 1 }) : engine.conversation(conversation.id);
    void answered.then(
      () => this.#isBack('The server answers again.'),
      () => {
        this.#isAway = false;
      },
    );
  }

  #isBack(how: string): void {
    this.#isAway = false;
    this.#listener.trouble(null);
    this.#listener.note(how);
  }

  async #accepted(place: Place, prompt: string, options: SubmitOptions): Promise<void> {
    const known = place.conversation;
    if (known !== null) {
      await this.#reached(() => this.engine.submit(known.id, prompt, options));
      return;
    }
    const { key = '', ...create } = place.spec;
    const { turn, seq } = await this.#reached(() => this.engine.submit(key, prompt, { ...options, create }));
    const made = await this.#reached(() => this.engine.conversation(turn.conversationId));
    place.conversation = made;
    // The person may have gone elsewhere meanwhile.
    if (place === this.#place) this.#follow({ id: made.id, after: seq - 1, log: made.logId }, () => true);
  }

  async #reached<T>(ask: () => Promise<T>): Promise<T> {
    for (;;) {
      try {
        return await ask();
      } catch (error) {
        if (this.#closed || !hasCode(error, 'unreachable')) throw error;
        await this.#reconnect();
      }
    }
  }

  #follow(from: Mark, isShown: (event: PublicEvent) => boolean): void {
    this.#following = new AbortController();
    const { signal } = this.#following;
    this.#followed(from, isShown, signal).catch((error) => {
      if (!signal.aborted && !this.#closed) this.#listener.failed(error);
    });
  }

  async #followed(from: Mark, isShown: (event: PublicEvent) => boolean, signal: AbortSignal): Promise<void> {
    const { id } = from;
    let { after, log } = from;
    while (!signal.aborted) {
      try {
        for await (const event of this.engine.follow(id, { after, log, signal })) {
          after = event.seq;
          if (isShown(event)) this.#listener.event(event);
        }
        return;
      } catch (error) {
        if (signal.aborted || this.#closed) return;
        if (hasCode(error, 'unreachable')) await this.#reconnect();
        else if (hasCode(error, 'log_changed')) {
          const found = await this.engine.conversation(id);
          [after, log] = [found.lastSeq, found.logId];
          this.#listener.note(
            'Stored events were lost, or a backup was restored. The conversation continues from there.',
          );
        } else throw error;
      }
    }
  }

  #reconnect(): Promise<void> {
    this.#reconnecting ??= this.#connected().finally(() => {
      this.#reconnecting = null;
    });
    return this.#reconnecting;
  }

  /** Tries until a server answers, this process can do the work itself, or the person leaves. */
  async #connected(): Promise<void> {
    this.#isAway = true;
    await this.engine.close();
    while (!this.#closed) {
      this.#listener.trouble('The server does not answer. Trying again …');
      try {
        this.#desk = await this.#open((trouble) => this.onTrouble(trouble));
        this.#isBack(
          this.served ? 'Connected again.' : 'No server answers. This process continues the conversation itself.',
        );
        return;
      } catch (error) {
        if (!hasCode(error, 'unreachable')) throw error;
        await delay(AGAIN_MS);
      }
    }
  }
}

/** A conversation that is not shown, and the number of its turn that runs or is next. */
export interface OpenElsewhere {
  readonly name: string;
  readonly n: number;
}

/** The conversation that is shown, or will be created. */
interface Place {
  /** Null: its first prompt creates it. */
  conversation: PublicConversation | null;
  /** What it is created with. */
  readonly spec: ConversationSpec;
}

/** The last event of a conversation that was seen. */
interface Mark {
  readonly id: string;
  readonly after: number;
  readonly log: string;
}

/** The events with which an open turn began, as far as they matter here. */
function beginningOf({ id, conversationId, n, agent, requestId, retryOf, prompt, state, ...turn }: PublicTurn) {
  const { attempt, createdAt, startedAt } = turn;
  const of = { conversationId, turnId: id, seq: 0 };
  const queued: PublicEvent[] = [
    {
      ...of,
      kind: 'turn.queued',
      at: createdAt,
      payload: { n, agent, requestId, retryOf, preview: promptText(prompt) },
    },
  ];
  if (state === 'queued') return queued;
  return [...queued, { ...of, kind: 'turn.started', at: startedAt ?? createdAt, payload: { n, attempt } } as const];
}

export function promptText(prompt: PublicTurn['prompt']): string {
  return prompt.map((block) => (block.type === 'text' ? block.text : `[${block.type}]`)).join('\n');
}
