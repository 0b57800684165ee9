import { isObject } from '../../../core/content.ts';
import type { Child } from '../../../ports/sandbox.ts';
import type { ClaudeMessage } from '../connection.ts';
import { LineReader } from './lines.ts';
import { StderrTail } from './stderr-tail.ts';

export interface Listener {
  message(message: ClaudeMessage): void;
  /** Called once, after the last message: the process is gone. */
  gone(how: Ending): void;
}

export interface Ending {
  readonly code: number | null;
  /** How it ended, with what it complained about. */
  readonly text: string;
  /** The last of what it complained about. */
  readonly complaint: string;
}

const CLOSE_STEP_MS = 2_000;

/** One process of Claude: lines of JSON go in and come out, and in the end it is gone. Whatever it prints, nothing throws. */
export class ClaudeProcess {
  /** Lines of its output that were no messages. */
  noise = 0;
  readonly #child: Child;
  readonly #stderr = new StderrTail();
  readonly #ended: Promise<void>;
  #tooLong = false;
  #closing: Promise<void> | null = null;

  constructor(child: Child, listener: Listener) {
    this.#child = child;
    this.#ended = this.#listen(listener, this.#stderr.read(child.stderr));
  }

  get identity() {
    return this.#child.identity;
  }

  get alive(): boolean {
    return this.#child.alive;
  }

  send(message: unknown): void {
    this.write(`${JSON.stringify(message)}\n`);
  }

  write(text: string): void {
    this.#child.stdin.write(text);
  }

  /** It gets no more input. */
  endInput(): void {
    this.#child.stdin.end();
  }

  /** Ends its input, which ends an idle Claude in good order; then asks; then insists. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  /** Resolves when it is gone and all that it said was handed on. */
  async kill(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.#ended;
  }

  async #close(): Promise<void> {
    this.endInput();
    if (await this.#endsWithin(CLOSE_STEP_MS)) return;
    this.#child.kill('SIGTERM');
    if (await this.#endsWithin(CLOSE_STEP_MS)) return;
    await this.kill();
  }

  async #endsWithin(ms: number): Promise<boolean> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<false>((resolve) => {
      timer = setTimeout(resolve, ms, false);
    });
    const ended = await Promise.race([this.#ended.then(() => true), late]);
    clearTimeout(timer);
    return ended;
  }

  async #listen(listener: Listener, complaints: Promise<void>): Promise<void> {
    const onLine = (line: string) => {
      const message = parseMessage(line);
      if (message !== null) listener.message(message);
      else if (line.trim() !== '') this.noise += 1;
    };
    // What such a line was, a result or a question, nobody knows any more: going on would be waiting for it.
    const lines = new LineReader(onLine, () => {
      this.#tooLong = true;
      this.#child.kill('SIGKILL');
    });
    try {
      for await (const chunk of this.#child.stdout) lines.push(chunk);
      lines.end();
    } catch {
      // The pipe broke: what matters is how the process ended.
    }
    const { code, signal } = await this.#child.exited;
    await complaints;
    const complaint = this.#stderr.text;
    const how = this.#tooLong
      ? 'because it printed a line that is too long'
      : signal === null
        ? `with code ${code}`
        : `by ${signal}`;
    listener.gone({ code, complaint, text: `${how}${complaint === '' ? '' : `: ${complaint}`}` });
  }
}

/** Null: noise. A program's output is never trusted to be what it should. */
export function parseMessage(line: string): ClaudeMessage | null {
  try {
    const message: unknown = JSON.parse(line);
    return isObject(message) && typeof message.type === 'string' ? (message as ClaudeMessage) : null;
  } catch {
    return null;
  }
}
