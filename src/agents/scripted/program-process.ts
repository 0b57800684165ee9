import type { Child } from '../../ports/sandbox.ts';
import { LineReader } from './lines.ts';
import { parseMessage } from './messages.ts';
import type { FromProgram, ToProgram } from './protocol.ts';
import { StderrTail } from './stderr-tail.ts';

export interface Listener {
  message(message: FromProgram): void;
  /** Resolves when more may come. */
  room(): Promise<void>;
  /** Called once, after the last message: the process is gone. `how` says how, with what it complained about. */
  gone(how: string): void;
}

const CLOSE_STEP_MS = 500;

/** The program's process: messages go in and come out, and in the end it is gone. Whatever it prints, nothing here throws. */
export class ProgramProcess {
  /** Lines of its output that were no messages. */
  noise = 0;
  readonly #child: Child;
  readonly #stderr = new StderrTail();
  #gone = false;
  #closing: Promise<void> | null = null;

  constructor(child: Child, listener: Listener) {
    this.#child = child;
    void this.#stderr.read(child.stderr);
    void this.#listen(listener);
  }

  get identity() {
    return this.#child.identity;
  }

  get alive(): boolean {
    return this.#child.alive && !this.#gone;
  }

  send(message: ToProgram): void {
    this.#child.stdin.write(`${JSON.stringify(message)}\n`);
  }

  /** Ends its input, which ends a program in good order; then asks; then insists. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async kill(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.#child.exited;
  }

  async #close(): Promise<void> {
    this.#child.stdin.end();
    if (await this.#exitsWithin(CLOSE_STEP_MS)) return;
    this.#child.kill('SIGTERM');
    if (await this.#exitsWithin(CLOSE_STEP_MS)) return;
    await this.kill();
  }

  async #exitsWithin(ms: number): Promise<boolean> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<false>((resolve) => {
      timer = setTimeout(resolve, ms, false);
    });
    const exited = await Promise.race([this.#child.exited.then(() => true), late]);
    clearTimeout(timer);
    return exited;
  }

  async #listen(listener: Listener): Promise<void> {
    const lines = new LineReader((line) => {
      const message = parseMessage(line);
      if (message === null) this.noise += 1;
      else listener.message(message);
    });
    try {
      for await (const chunk of this.#child.stdout) {
        lines.push(chunk);
        await listener.room();
      }
    } catch {
      // The pipe broke: what matters is how the process ended.
    }
    const { code, signal } = await this.#child.exited;
    this.noise += lines.dropped;
    this.#gone = true;
    const complaint = this.#stderr.text === '' ? '' : `: ${this.#stderr.text}`;
    listener.gone(`${signal === null ? `with code ${code}` : `by ${signal}`}${complaint}`);
  }
}
