import { type AnyMessage, type ClientConnection, client, RequestError } from '@agentclientprotocol/sdk';
import { isObject } from '../../core/content.ts';
import type { ProcessIdentity } from '../../core/process.ts';
import type { Child } from '../../ports/sandbox.ts';
import { LineProcess } from '../shared/line-process.ts';

export interface AgentListener {
  /** A notification, exactly as it came. Called in the order of the wire, and before any answer that came after it. */
  notification(method: string, params: unknown): void;
  /** The answer to this request is here; whoever made it hears of it a moment later. In the order of the wire, too. */
  answered(method: string): void;
  /** A request of the agent; what is thrown becomes its error. */
  request(method: string, params: unknown): Promise<unknown>;
  /** Resolves when more may come. */
  room(): Promise<void> | undefined;
  /** The process is gone. */
  gone(how: string): void;
}

/** The agent's process ended, so there will be no answer. */
export class AgentGone extends Error {}

const CLOSE_STEP_MS = 2_000;
const NOISE_SHOWN = 200;
/** Agents tell all kinds of things there; what they ended of comes last. */
const COMPLAINT_LINES = 5;

/**
 * An agent's process as the other end of the protocol. Requests and answers go through the SDK. Notifications do not: its
 * handlers take off fields that they do not know, drop kinds of updates that they do not know, and may run after an answer that
 * came later. They are taken from the wire as they are.
 */
export class AcpConnection {
  readonly #process: LineProcess;
  readonly #sdk: ClientConnection;
  #toSdk!: ReadableStreamDefaultController<AnyMessage>;
  /** The methods of our requests that were not answered yet. */
  readonly #asked = new Map<unknown, string>();
  /** The first line that was no message; null: all were. */
  #noise: string | null = null;
  #ending: string | null = null;

  constructor(child: Child, listener: AgentListener) {
    const readable = new ReadableStream<AnyMessage>({
      start: (controller) => {
        this.#toSdk = controller;
      },
    });
    const writable = new WritableStream<AnyMessage>({ write: (message) => this.#send(message) });
    this.#sdk = client({ name: 'throughline' })
      .onRequest('*', ({ method, params }) => listener.request(method, params))
      .connect({ readable, writable });
    this.#process = new LineProcess(
      child,
      {
        line: (line) => this.#receive(line, listener),
        // It may have been the answer that somebody waits for.
        tooLong: () => {
          this.#noise ??= 'a line that is too long';
          child.kill('SIGKILL');
        },
        room: () => listener.room(),
        gone: ({ how, complaint }) => {
          const said = complaint.split('\n').slice(-COMPLAINT_LINES).join('\n');
          const text = said === '' ? how : `${how}: ${said}`;
          this.#ending = this.#noise === null ? text : `${text} (it printed ${this.#noise})`;
          this.#sdk.close(new AgentGone(`the agent’s process ended ${this.#ending}`));
          listener.gone(this.#ending);
        },
      },
      { closeStepMs: CLOSE_STEP_MS },
    );
  }

  get identity(): ProcessIdentity {
    return this.#process.identity;
  }

  get alive(): boolean {
    return this.#process.alive && this.#ending === null;
  }

  /** What it printed that is no message of the protocol; null: nothing. */
  get noise(): string | null {
    return this.#noise;
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

  #send(message: AnyMessage): void {
    if ('method' in message && 'id' in message) this.#asked.set(message.id, message.method);
    this.#process.send(message);
  }

  #answer(id: unknown, listener: AgentListener): void {
    const method = this.#asked.get(id);
    if (method === undefined) return;
    this.#asked.delete(id);
    listener.answered(method);
  }

  #receive(line: string, listener: AgentListener): void {
    const message = parse(line);
    if (message === null) {
      if (line.trim() !== '') this.#noise ??= JSON.stringify(line.slice(0, NOISE_SHOWN));
    } else if (typeof message.method === 'string' && message.id === undefined && !message.method.startsWith('$/')) {
      listener.notification(message.method, message.params);
    } else {
      if (message.method === undefined) this.#answer(message.id, listener);
      this.#toSdk.enqueue(message as unknown as AnyMessage);
    }
  }
}

export { RequestError };

/** Null: noise. Programs print all kinds of things where only messages should be. */
function parse(line: string): Record<string, unknown> | null {
  try {
    const message: unknown = JSON.parse(line);
    return isObject(message) && message.jsonrpc === '2.0' ? message : null;
  } catch {
    return null;
  }
}
