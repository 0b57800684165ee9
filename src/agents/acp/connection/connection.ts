import { type AnyMessage, type ClientConnection, client } from '@agentclientprotocol/sdk';
import { DEEPEST, isTooDeep } from '../../../core/input/too-deep.ts';
import type { SandboxProcess } from '../../../core/process.ts';
import type { Child } from '../../../ports/sandbox.ts';
import { parseObject } from '../../shared/json.ts';
import { type Ending, LineProcess } from '../../shared/line-process.ts';

interface AgentListener {
  /**
   * A notification as it came, and the length of its line. Called in the order of arrival, and before any answer that came after it.
   */
  notification(method: string, params: unknown, length: number): void;
  /** The answer to a request of this method has come. Called in the order of arrival, before the caller of `request` gets the answer. */
  answered?(method: string): void;
  /** A request of the agent. The agent gets what this throws as an error. */
  request(method: string, params: unknown): Promise<unknown>;
  /** Resolves when more may come. */
  ready?(): Promise<void> | undefined;
  /** The process is gone: "ended with code 2", "was ended: it did not answer". */
  gone?(how: string): void;
}

/** The agent's process ended, so there will be no answer. */
export class AgentGone extends Error {}

const CLOSE_STEP_MS = 2_000;
const NOISE_SHOWN = 200;
/** Agents print all kinds of things to stderr. The reason for their end comes last. */
const STDERR_LINES = 5;
/** The most that an agent may send in one turn, or between two: it is kept in memory and in the store. */
const MOST_AT_ONCE = 256 * 1024 * 1024;
/** The most requests of the agent that may be open at once. While there are more, we read nothing from it. */
const MOST_OPEN = 1_000;

/**
 * The connection to an agent's process. Requests and answers go through the SDK. Notifications do not: the SDK removes unknown
 * fields, drops unknown kinds of updates, and may call a handler after an answer that came later. So we read them from the wire.
 */
export class AcpConnection {
  readonly #process: LineProcess;
  readonly #sdk: ClientConnection;
  #toSdk!: ReadableStreamDefaultController<AnyMessage>;
  readonly #listener: AgentListener;
  /** Our requests that are not answered yet: their methods by id. */
  readonly #asked = new Map<unknown, string>();
  /** The number of requests of the agent that are not answered yet. */
  #open = 0;
  #onAnswered: (() => void) | null = null;
  /** How many characters it has sent in this turn, or since the last one. */
  #received = 0;
  #receivedAt = performance.now();
  /** The first line that is no message of the protocol; null: there is none. */
  noise: string | null = null;
  /** Why we ended it, for people; null: we did not, or no reason is needed. */
  #stopReason: string | null = null;
  #ending: string | null = null;

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
        // The line may have been an answer that we wait for.
        tooLong: () => this.stop('it printed a line that is too long'),
        ready: () => (this.#open < MOST_OPEN ? listener.ready?.() : this.#answeredSome()),
        gone: (ending) => this.#gone(ending),
      },
      { closeStepMs: CLOSE_STEP_MS },
    );
    // Do not wait for answers to an agent that is gone.
    void child.exited.then(() => this.#onAnswered?.());
  }

  get identity(): SandboxProcess {
    return this.#process.identity;
  }

  get alive(): boolean {
    return this.#process.alive && !this.gone;
  }

  /** The process is gone, and everything that it sent was passed on. */
  get gone(): boolean {
    return this.#ending !== null;
  }

  /** How long it has sent nothing. */
  get silentMs(): number {
    return performance.now() - this.#receivedAt;
  }

  /** Throws `AgentGone` when its process is gone. */
  throwIfGone(): void {
    if (this.gone) throw this.#goneError();
  }

  /** Rejects with what the agent answered (`RequestError`), or with `AgentGone`. */
  request(method: string, params: unknown): Promise<unknown> {
    return this.#sdk.agent.request(method, params);
  }

  notify(method: string, params: unknown): void {
    // Fails only when the process is gone, and the listener gets that as `gone`.
    this.#sdk.agent.notify(method, params).catch(() => {});
  }

  close(): Promise<void> {
    return this.#process.close();
  }

  kill(): Promise<void> {
    return this.#process.kill();
  }

  /** Ends the process at once, and takes nothing more from it: an answer may be what it sends next. The reason is for people. */
  stop(why: string): void {
    this.#stopReason ??= why;
    void this.#process.kill();
  }

  /** A turn begins or ends: the limit for what it sends starts again. */
  resetLimit(): void {
    this.#received = 0;
  }

  /** Resolves when the agent has read enough of what we sent to get more. */
  drained(): Promise<void> {
    return this.#process.drained();
  }

  #gone({ how, stderr }: Ending): void {
    const said = stderr.split('\n').slice(-STDERR_LINES).join('\n');
    const noise = this.noise === null ? '' : ` (it printed ${this.noise})`;
    const itself = `ended ${how}${said === '' ? '' : `: ${said}`}`;
    this.#ending = `${this.#stopReason === null ? itself : `was ended: ${this.#stopReason}`}${noise}`;
    this.#sdk.close(this.#goneError());
    this.#listener.gone?.(this.#ending);
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
    if (this.#stopReason !== null) return;
    this.#received += line.length;
    this.#receivedAt = performance.now();
    if (this.#received > MOST_AT_ONCE) {
      this.stop(`it sent more than ${MOST_AT_ONCE / 2 ** 20} MiB at once`);
      return;
    }
    const message = parse(line);
    if (message === null) {
      if (line.trim() !== '') this.noise ??= JSON.stringify(line.slice(0, NOISE_SHOWN));
    } else if (line.length > 2 * DEEPEST && isTooDeep(message)) {
      this.stop(`it printed a message that is nested deeper than ${DEEPEST} levels`);
    } else if (typeof message.method !== 'string') this.#answered(message);
    else if (message.id === undefined && !message.method.startsWith('$/')) {
      this.#listener.notification(message.method, message.params, line.length);
    } else this.#toSdk.enqueue(message as unknown as AnyMessage);
  }

  /** Drops answers to unknown requests, and second answers: the SDK would print a warning about them to our stderr. */
  #answered(message: Readonly<Record<string, unknown>>): void {
    const method = this.#asked.get(message.id);
    if (method === undefined) return;
    this.#asked.delete(message.id);
    this.#listener.answered?.(method);
    this.#toSdk.enqueue(message as unknown as AnyMessage);
  }
}

/** Null: the line is no message. Some programs print other things to stdout. */
function parse(line: string): Record<string, unknown> | null {
  const message = parseObject(line);
  return message?.jsonrpc === '2.0' ? message : null;
}
