import type { ProcessIdentity } from '../../core/process.ts';
import type { Child } from '../../ports/sandbox.ts';
import { LineReader, MAX_LINE_BYTES } from './lines.ts';
import { StderrTail } from './stderr-tail.ts';

export interface LineListener {
  line(line: string): void;
  /** A line was longer than any message can be, and is gone. */
  tooLong(): void;
  /** Resolves when more may come. Left out: any time. */
  room?(): Promise<void> | undefined;
  /** Called once, after the last line: the process is gone. */
  gone(how: Ending): void;
}

export interface Ending {
  readonly code: number | null;
  /** How it ended. */
  readonly how: string;
  /** The same, with what it complained about. */
  readonly text: string;
  /** The last of what it complained about. */
  readonly complaint: string;
}

export interface LineProcessOptions {
  /** How long it may take to end when its input does, and again when it is asked to. */
  readonly closeStepMs: number;
  readonly maxLineBytes?: number;
}

/** A program that takes no more than this of what it is given is not listened to until it has: it could ask without end. */
const MOST_UNTAKEN_BYTES = 64 * 1024 * 1024;

/** A program that speaks in lines: they go in and come out, and in the end it is gone. Whatever it prints, nothing throws. */
export class LineProcess {
  readonly #child: Child;
  readonly #options: LineProcessOptions;
  readonly #stderr = new StderrTail();
  readonly #ended: Promise<void>;
  #gone = false;
  #closing: Promise<void> | null = null;
  /** What it was given and has not taken. */
  #untakenBytes = 0;
  #onTaken: (() => void)[] = [];

  constructor(child: Child, listener: LineListener, options: LineProcessOptions) {
    this.#child = child;
    this.#options = options;
    this.#ended = this.#listen(listener, this.#stderr.read(child.stderr));
  }

  get identity(): ProcessIdentity {
    return this.#child.identity;
  }

  get alive(): boolean {
    return this.#child.alive && !this.#gone;
  }

  write(text: string): void {
    const bytes = Buffer.from(text);
    this.#untakenBytes += bytes.length;
    this.#child.stdin.write(bytes, () => {
      this.#untakenBytes -= bytes.length;
      if (this.#untakenBytes <= MOST_UNTAKEN_BYTES) for (const wake of this.#onTaken.splice(0)) wake();
    });
  }

  /** Resolves when it has taken so much of what it was given that it may have more. */
  async taken(): Promise<void> {
    while (this.#untakenBytes > MOST_UNTAKEN_BYTES) {
      await new Promise<void>((resolve) => this.#onTaken.push(resolve));
    }
  }

  send(message: unknown): void {
    this.write(`${JSON.stringify(message)}\n`);
  }

  /** It gets no more input. */
  endInput(): void {
    this.#child.stdin.end();
  }

  /** Ends its input, which ends a program in good order; then asks; then insists. */
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
    if (await this.#endsWithin(this.#options.closeStepMs)) return;
    this.#child.kill('SIGTERM');
    if (await this.#endsWithin(this.#options.closeStepMs)) return;
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

  async #listen(listener: LineListener, complaints: Promise<void>): Promise<void> {
    const { maxLineBytes = MAX_LINE_BYTES } = this.#options;
    const lines = new LineReader(
      (line) => listener.line(line),
      () => listener.tooLong(),
      maxLineBytes,
    );
    try {
      for await (const chunk of this.#child.stdout) {
        lines.push(chunk);
        await listener.room?.();
        if (this.#untakenBytes > MOST_UNTAKEN_BYTES) await this.taken();
      }
      lines.end();
    } catch {
      // The pipe broke: what matters is how the process ended.
    }
    const { code, signal } = await this.#child.exited;
    await complaints;
    this.#gone = true;
    const complaint = this.#stderr.text;
    const how = signal === null ? `with code ${code}` : `by ${signal}`;
    listener.gone({ code, how, complaint, text: `${how}${complaint === '' ? '' : `: ${complaint}`}` });
  }
}
