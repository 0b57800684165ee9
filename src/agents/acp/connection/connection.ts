import { type AnyMessage, type ClientConnection, client } from '@agentclientprotocol/sdk';
import { isObject } from '../../../core/content.ts';
import type { ProcessIdentity } from '../../../core/process.ts';
import type { Child } from '../../../ports/sandbox.ts';
import { type Ending, LineProcess } from '../../shared/line-process.ts';

export interface AgentListener {
  /**
   * A notification, exactly as it came, and how long it was. Called in the order of the wire, and before any answer that came
   * after it.
   */
  notification(method: string, params: unknown, length: number): void;
  /** The answer to this request is here; whoever made it hears of it a moment later. In the order of the wire, too. */
  answered(method: string): void;
  /** A request of the agent; what is thrown becomes its error. */
  request(method: string, params: unknown): Promise<unknown>;
  /** Resolves when more may come. */
  room(): Promise<void> | undefined;
  /** The process is gone: "ended with code 2", "was ended: it did not answer". */
  gone(how: string): void;
}

/** The agent's process ended, so there will be no answer. */
export class AgentGone extends Error {}

const CLOSE_STEP_MS = 2_000;
const NOISE_SHOWN = 200;
/** Agents tell all kinds of things there; what they ended of comes last. */
const COMPLAINT_LINES = 5;
/** All that an agent may say in one turn, or between two: whatever is kept of it has to find room here and in the store. */
const MOST_AT_ONCE = 256 * 1024 * 1024;
/** Requests of the agent that may be open at the same time; it is not listened to while there are more. */
const MOST_OPEN = 1_000;

/**
 * An agent's process as the other end of the protocol. Requests and answers go through the SDK. Notifications do not: its
 * handlers take off fields that they do not know, drop kinds of updates that they do not know, and may run after an answer that
 * came later. They are taken from the wire as they are.
 */
export class AcpConnection {
  readonly #process: LineProcess;
  readonly #sdk: ClientConnection;
  #toSdk!: ReadableStreamDefaultController<AnyMessage>;
  readonly #listener: AgentListener;
  /** The methods of our requests that were not answered yet. */
  readonly #asked = new Map<unknown, string>();
  /** How many requests of the agent were not answered yet. */
  #open = 0;
  #onAnswered: (() => void) | null = null;
  /** How much it has said in this turn, or since the last one. */
  #said = 0;
  /** The first line that was no message; null: all were. */
  #noise: string | null = null;
  /** Why we have ended it; null: we have not, or nobody needs to be told. */
  #why: string | null = null;
  #ending: string | null = null;
  readonly #over = Promise.withResolvers<void>();

  constructor(child: Child, listener: AgentListener) {
    this.#listener = listener;
    const readable = new ReadableStream<AnyMessage>({
      start: (controller) => {
        this.#toSdk = controller;
      },
    });
    const writable = new WritableStream<AnyMessage>({ write: (message) => this.#send(message) });
    this.#sdk = client({ name: 'throughline' })
      .onRequest('*', ({ method, params }) => this.#serve(method, params))
      .connect({ readable, writable });
    this.#process = new LineProcess(
      child,
      {
        line: (line) => this.#receive(line),
        // It may have been the answer that somebody waits for.
        tooLong: () => this.stop('it printed a line that is longer than any message'),
        room: () => (this.#open < MOST_OPEN ? listener.room() : this.#answeredSome()),
        gone: (ending) => this.#gone(ending),
      },
      { closeStepMs: CLOSE_STEP_MS },
    );
    // Nobody waits for answers that will not be taken.
    void child.exited.then(() => this.#onAnswered?.());
  }

  get identity(): ProcessIdentity {
    return this.#process.identity;
  }

  get alive(): boolean {
    return this.#process.alive && this.#ending === null;
  }

  /** Resolves when the process is gone, and all that it said was handed on. */
  get over(): Promise<void> {
    return this.#over.promise;
  }

  /** What it printed that is no message of the protocol; null: nothing. */
  get noise(): string | null {
    return this.#noise;
  }

  /** Throws `AgentGone` when its process is. */
  throwIfGone(): void {
    if (this.#ending !== null) throw this.#goneError();
  }

  /** Rejects with what the agent answered (`RequestError`), or with `AgentGone`. */
  request(method: string, params: unknown): Promise<unknown> {
    return this.#sdk.agent.request(method, params);
  }

  notify(method: string, params: unknown): void {
    // Only fails when the process is gone, which is told elsewhere.
    this.#sdk.agent.notify(method, params).catch(() => {});
  }

  close(): Promise<void> {
    return this.#process.close();
  }

  kill(): Promise<void> {
    return this.#process.kill();
  }

  /** Ends the process at once, for a reason that people are told. */
  stop(why: string): void {
    this.#why ??= why;
    void this.#process.kill();
  }

  /** A turn begins or ends: what was said before is counted no longer. */
  beginAnew(): void {
    this.#said = 0;
  }

  /** Resolves when the agent has taken so much of what it was given that it may have more. */
  taken(): Promise<void> {
    return this.#process.taken();
  }

  #gone({ how, complaint }: Ending): void {
    const said = complaint.split('\n').slice(-COMPLAINT_LINES).join('\n');
    const noise = this.#noise === null ? '' : ` (it printed ${this.#noise})`;
    const itself = `ended ${how}${said === '' ? '' : `: ${said}`}`;
    this.#ending = `${this.#why === null ? itself : `was ended: ${this.#why}`}${noise}`;
    this.#sdk.close(this.#goneError());
    this.#listener.gone(this.#ending);
    this.#over.resolve();
  }

  #goneError(): AgentGone {
    return new AgentGone(`the agent’s process ${this.#ending}`);
  }

  async #serve(method: string, params: unknown): Promise<unknown> {
    this.#open += 1;
    try {
      return await this.#listener.request(method, params);
    } finally {
      this.#open -= 1;
      this.#onAnswered?.();
    }
  }

  async #answeredSome(): Promise<void> {
    while (this.#open >= MOST_OPEN && this.#process.alive) {
      await new Promise<void>((resolve) => {
        this.#onAnswered = resolve;
      });
    }
    this.#onAnswered = null;
  }

  #send(message: AnyMessage): void {
    if ('method' in message && 'id' in message) this.#asked.set(message.id, message.method);
    this.#process.send(message);
  }

  #receive(line: string): void {
    this.#said += line.length;
    if (this.#said > MOST_AT_ONCE) {
      this.stop(`it said more than ${MOST_AT_ONCE / 2 ** 20} MiB at once`);
      return;
    }
    const message = parse(line);
    if (message === null) {
      if (line.trim() !== '') this.#noise ??= JSON.stringify(line.slice(0, NOISE_SHOWN));
    } else if (line.length > 2 * DEEPEST && isDeeper(message, DEEPEST)) {
      this.stop('it printed a message that is nested deeper than any is');
    } else if (typeof message.method !== 'string') this.#answered(message);
    else if (message.id === undefined && !message.method.startsWith('$/')) {
      this.#listener.notification(message.method, message.params, line.length);
    } else this.#toSdk.enqueue(message as unknown as AnyMessage);
  }

  /** An answer to what nobody asked, or asked once and was answered, is none. The SDK would complain of it on our stderr. */
  #answered(message: Readonly<Record<string, unknown>>): void {
    const method = this.#asked.get(message.id);
    if (method === undefined) return;
    this.#asked.delete(message.id);
    this.#listener.answered(method);
    this.#toSdk.enqueue(message as unknown as AnyMessage);
  }
}

/** Null: noise. Programs print all kinds of things where only messages should be. */
function parse(line: string): Record<string, unknown> | null {
  try {
    const message: unknown = JSON.parse(line);
    return isObject(message) && message.jsonrpc === '2.0' ? message : null;
  } catch {
    return null;
  }
}

/** Reading what is nested has no bound, and writing it down has one: by then it would be our fault. */
const DEEPEST = 200;

function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return levels === 0 || Object.values(value).some((inner) => isDeeper(inner, levels - 1));
}
