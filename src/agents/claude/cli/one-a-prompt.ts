import type { Child } from '../../../ports/sandbox.ts';
import type { ClaudeConnection, ClaudeMessage, ClaudeUserMessage } from '../connection.ts';
import { Inbox } from '../inbox.ts';
import { ClaudeProcess, type Ending } from './claude-process.ts';
import { refusalOf } from './refusal.ts';

/** Starts a process that waits for its prompt; `id`: the session to go on with, null: what the opening said. */
export type StartProcess = (id: string | null) => Promise<Child>;

/*
 * For versions that take one prompt a process: `claude -p --resume ID`, the prompt on stdin.
 *
 * The next process is started when the one before has ended, not when the prompt comes: so the process that a prompt goes to
 * is known, and can be recorded, before the prompt leaves. These versions wait for their input without a limit (1.0.30 and
 * 1.0.128 were seen to); they look for the session only then. They cannot be interrupted but by ending them, and ask nobody:
 * a tool that would need a permission is denied by Claude itself.
 */
export class OneAPromptConnection implements ClaudeConnection {
  /** The prompt is plain text on stdin; Claude makes up its uuid. */
  readonly namesPrompts = false;
  readonly #start: StartProcess;
  readonly #messages = new Inbox<ClaudeMessage>();
  #process: ClaudeProcess;
  #ending: string | null = null;
  #closing = false;
  /** The id as Claude said it last: older versions issue a new one with every prompt. */
  #id: string | null;
  #prompt: string | null = null;
  #answered = false;
  /** Prompts that came while the next process was being started; there is never more than one. */
  #waiting: ClaudeUserMessage | null = null;
  #starting: Promise<void> | null = null;

  constructor(child: Child, id: string | null, start: StartProcess) {
    this.#start = start;
    this.#id = id;
    this.#process = this.#follow(child);
  }

  get process() {
    return this.#process.identity;
  }

  get alive(): boolean {
    return this.#ending === null;
  }

  get messages(): AsyncIterable<ClaudeMessage> {
    return this.#messages;
  }

  get ending(): string | null {
    return this.#ending;
  }

  send(message: ClaudeUserMessage): void {
    if (!this.alive) return;
    if (this.#starting !== null) {
      this.#waiting = message;
      return;
    }
    this.#prompt = message.uuid;
    this.#process.write(textOf(message));
    this.#process.endInput();
  }

  /** There is no other way to stop it. */
  interrupt(): Promise<void> {
    return this.#prompt === null ? Promise.resolve() : this.kill();
  }

  async close(): Promise<void> {
    this.#closing = true;
    await this.#starting;
    // One that waits for its prompt would take the end of its input for an empty one.
    await (this.#prompt === null ? this.#process.kill() : this.#process.close());
  }

  async kill(): Promise<void> {
    this.#closing = true;
    await this.#starting;
    await this.#process.kill();
  }

  #follow(child: Child): ClaudeProcess {
    return new ClaudeProcess(child, {
      message: (message) => {
        if (typeof message.session_id === 'string') this.#id = message.session_id;
        if (message.type === 'result') this.#answered = true;
        this.#messages.push(message);
      },
      gone: (ending) => this.#over(ending),
    });
  }

  #over(ending: Ending): void {
    const refusal = this.#prompt !== null && !this.#answered ? refusalOf(ending.complaint) : null;
    if (refusal !== null) {
      // It says so before it has done anything, but not as a message; a turn that failed is not one that was lost.
      this.#messages.push({ type: 'result', is_error: true, result: refusal.message, user_message_uuid: this.#prompt });
    }
    const done = this.#answered || refusal !== null;
    this.#prompt = null;
    this.#answered = false;
    if (!done || this.#closing) this.#end(ending.text);
    else this.#starting = this.#next();
  }

  async #next(): Promise<void> {
    try {
      const child = await this.#start(this.#id);
      this.#process = this.#follow(child);
      this.#starting = null;
      // Its process has ended, so nothing can come any more that belongs to the turn.
      this.#messages.push({ type: 'system', subtype: 'session_state_changed', state: 'idle' });
      const waiting = this.#waiting;
      this.#waiting = null;
      if (this.#closing) await this.#process.kill();
      else if (waiting !== null) this.send(waiting);
    } catch (error) {
      this.#starting = null;
      this.#messages.push({ type: 'system', subtype: 'session_state_changed', state: 'idle' });
      this.#end(`because the next could not be started: ${error instanceof Error ? error.message : String(error)}`);
    }
  }

  #end(how: string): void {
    this.#ending ??= how;
    this.#messages.close();
  }
}

/** Blocks that are no text have no way into such a process; what stands for them does. */
function textOf({ message }: ClaudeUserMessage): string {
  if (typeof message.content === 'string') return message.content;
  return message.content.map((block) => (block.type === 'text' ? block.text : '[picture]')).join('\n\n');
}
