import { jsonLine } from '../../core/input/visible.ts';
import type { SandboxProcess } from '../../core/process.ts';
import type { Child } from '../../ports/sandbox.ts';
import { LineReader } from './lines.ts';

interface LineListener {
  line(line: string): void;
  /** A line was longer than the limit, and was dropped. */
  tooLong(): void;
  /** Resolves when more lines may come. Left out: at any time. */
  ready?(): Promise<void> | undefined;
  /** Called once, after the last line, when the process has ended. */
  gone(ending: Ending): void;
}

export interface Ending {
  /** How it ended. */
  readonly how: string;
  /** The same, with the end of its stderr. */
  readonly text: string;
  /** The end of its stderr. */
  readonly stderr: string;
}

interface LineProcessOptions {
  /** How long it may take to exit after its input has ended, and again after SIGTERM. */
  readonly closeStepMs: number;
  readonly maxLineBytes?: number;
}

/** While more input than this waits for the program, we do not read its output. Otherwise it could ask for more without end. */
const MAX_PENDING_BYTES = 64 * 1024 * 1024;

/** A program that reads and writes lines. Whatever it prints, nothing throws. */
export class LineProcess {
  readonly #child: Child;
  readonly #options: LineProcessOptions;
  readonly #stderr = new StderrTail();
  readonly #ended: Promise<void>;
  #gone = false;
  #closing: Promise<void> | null = null;
  /** Input that it has not read yet. */
  #pendingBytes = 0;
  #onDrained: (() => void)[] = [];

  constructor(child: Child, listener: LineListener, options: LineProcessOptions) {
    this.#child = child;
    this.#options = options;
    this.#ended = this.#listen(listener, this.#stderr.read(child.stderr));
  }

  get identity(): SandboxProcess {
    return this.#child.identity;
  }

  get alive(): boolean {
    return this.#child.alive && !this.#gone;
  }

  write(text: string): void {
    const bytes = Buffer.from(text);
    this.#pendingBytes += bytes.length;
    this.#child.stdin.write(bytes, () => {
      this.#pendingBytes -= bytes.length;
      if (this.#pendingBytes <= MAX_PENDING_BYTES) for (const wake of this.#onDrained.splice(0)) wake();
    });
  }

  /** Resolves when the program has read enough of its input to get more. */
  async drained(): Promise<void> {
    while (this.#pendingBytes > MAX_PENDING_BYTES) {
      await new Promise<void>((resolve) => this.#onDrained.push(resolve));
    }
  }

  send(message: unknown): void {
    this.write(`${jsonLine(message)}\n`);
  }

  /** Ends its input, so that the program can exit by itself. After a timeout sends SIGTERM, then SIGKILL. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  /** Resolves when it has ended and all its output was delivered. */
  async kill(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.#ended;
  }

  async #close(): Promise<void> {
    this.#child.stdin.end();
    await endInSteps(this.#options.closeStepMs, this.#ended, (signal) => this.#child.kill(signal));
  }

  async #listen(listener: LineListener, stderrRead: Promise<void>): Promise<void> {
    const lines = new LineReader(listener.line, listener.tooLong, this.#options.maxLineBytes);
    try {
      for await (const chunk of this.#child.stdout) {
        lines.push(chunk);
        await listener.ready?.();
        if (this.#pendingBytes > MAX_PENDING_BYTES) await this.drained();
      }
      lines.end();
    } catch {
      // The pipe broke. The exit code says how the process ended.
    }
    const { code, signal } = await this.#child.exited;
    await stderrRead;
    this.#gone = true;
    const stderr = this.#stderr.text;
    const how = signal === null ? `with code ${code}` : `by ${signal}`;
    listener.gone({ how, stderr, text: `${how}${stderr === '' ? '' : `: ${stderr}`}` });
  }
}

/** Waits for a program whose input has ended. After each step that it takes too long sends a signal: SIGTERM, then SIGKILL. */
export async function endInSteps(
  stepMs: number,
  ended: Promise<void>,
  kill: (signal: 'SIGTERM' | 'SIGKILL') => void,
): Promise<void> {
  for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
    if (await endsWithin(stepMs, ended)) return;
    kill(signal);
  }
  await ended;
}

/** Whether `ended` resolves within this time. */
export async function endsWithin(ms: number, ended: Promise<unknown>): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<false>((resolve) => {
    timer = setTimeout(resolve, ms, false);
  });
  const inTime = await Promise.race([ended.then(() => true), late]);
  clearTimeout(timer);
  return inTime;
}

/** The last bytes of what a program prints. */
export class OutputTail {
  readonly #limit: number;
  #kept = Buffer.alloc(0);
  truncated = false;

  constructor(limit: number) {
    this.#limit = Math.max(0, limit);
  }

  /** Reads to the end. Never rejects: a broken pipe counts as the end. */
  async read(output: AsyncIterable<Uint8Array>): Promise<void> {
    try {
      for await (const chunk of output) {
        const all = Buffer.concat([this.#kept, chunk]);
        this.truncated ||= all.length > this.#limit;
        this.#kept = all.subarray(Math.max(0, all.length - this.#limit));
      }
    } catch {
      // Nothing more can be read.
    }
  }

  /** Never starts in the middle of a character. */
  get text(): string {
    const from = this.truncated ? this.#kept.findIndex((byte) => (byte & 0b1100_0000) !== 0b1000_0000) : 0;
    return from === -1 ? '' : this.#kept.toString('utf8', from);
  }
}

const STDERR_KEPT_BYTES = 4_096;

/** The end of a program's stderr, for error messages. */
export class StderrTail extends OutputTail {
  constructor() {
    super(STDERR_KEPT_BYTES);
  }

  /** Without control characters, because terminals show it. */
  override get text(): string {
    // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it removes
    return super.text.replaceAll(/\u001b\[[0-9;?]*[ -/]*[@-~]|[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, '').trim();
  }
}
