import type { Child } from '../../../ports/sandbox.ts';
import type { ClaudeConnection, ClaudeMessage, ClaudeUserMessage, ConnectRequest } from '../connection.ts';
import { Inbox } from '../inbox.ts';
import { complaintOf } from '../result.ts';
import { ClaudeProcess, type Ending } from './claude-process.ts';
import { Control, type ControlAnswer } from './control.ts';

/** One process that takes prompt after prompt, and answers control requests in between. */
export class WarmConnection implements ClaudeConnection {
  readonly namesPrompts = true;
  readonly #process: ClaudeProcess;
  readonly #control: Control;
  readonly #messages = new Inbox<ClaudeMessage>();
  readonly #gone = Promise.withResolvers<Ending>();
  /** What the process said it failed of, before there was a prompt. */
  #complaint = '';
  #ending: string | null = null;
  /** We have asked it to stop, and no result has come since. */
  #interrupted = false;

  constructor(child: Child, onPermission: ConnectRequest['onPermission']) {
    this.#control = new Control((message) => this.#process.send(message), onPermission);
    this.#process = new ClaudeProcess(child, {
      message: (message) => {
        if (this.#control.read(message)) return;
        this.#messages.push(message.type === 'result' ? this.#result(message) : message);
      },
      gone: (ending) => {
        this.#ending = ending.text;
        this.#control.end();
        this.#messages.close();
        this.#gone.resolve(ending);
      },
    });
  }

  get process() {
    return this.#process.identity;
  }

  get alive(): boolean {
    return this.#process.alive && this.#ending === null;
  }

  get messages(): AsyncIterable<ClaudeMessage> {
    return this.#messages;
  }

  get ending(): string | null {
    return this.#ending;
  }

  /** Whether it is up; else it has ended. A version that does not know how to be asked takes prompts all the same. */
  async start(): Promise<boolean> {
    return (await this.#control.ask({ subtype: 'initialize' })) !== null;
  }

  /** Null: it ended before it answered. */
  setServers(servers: Readonly<Record<string, object>>): Promise<ControlAnswer | null> {
    return this.#control.ask({ subtype: 'mcp_set_servers', servers });
  }

  /** How it ended, with everything that it complained about. */
  async whyEnded(): Promise<string> {
    const { text } = await this.#gone.promise;
    return this.#complaint === '' ? text : `${text}\n${this.#complaint}`;
  }

  send(message: ClaudeUserMessage): void {
    // What the SDK adds for `verbatimPrompts`: a prompt is what the person wrote, so "/clear" and "@file" are words. Since
    // 2.1.248; older versions pass over the field.
    this.#process.send({ ...message, client_composed: true });
  }

  async interrupt(): Promise<void> {
    if (!this.alive) return;
    this.#interrupted = true;
    await this.#control.ask({ subtype: 'interrupt' });
  }

  close(): Promise<void> {
    return this.#process.close();
  }

  kill(): Promise<void> {
    return this.#process.kill();
  }

  /** Older versions do not say that they were interrupted: 1.0.128 calls it an error, and not even that in `is_error`. */
  #result(message: ClaudeMessage): ClaudeMessage {
    this.#complaint = complaintOf(message);
    const silent = this.#interrupted && message.terminal_reason === undefined && message.subtype !== 'success';
    this.#interrupted = false;
    return silent ? { ...message, terminal_reason: 'aborted' } : message;
  }
}
