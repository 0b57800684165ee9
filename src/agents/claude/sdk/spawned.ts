import { EventEmitter } from 'node:events';
import { PassThrough, Readable } from 'node:stream';
import type { Child } from '../../../ports/sandbox.ts';
import { StderrTail } from '../../shared/line-process.ts';

/**
 * A process of the sandbox, in the form that the SDK expects. The SDK needs it at once, but the sandbox takes a moment to start
 * it. Until then its input is buffered here.
 */
export class SpawnedClaude extends EventEmitter {
  readonly stdin = new PassThrough();
  readonly stdout = new Readable({ read: () => this.#read?.() });
  killed = false;
  exitCode: number | null = null;
  signalCode: NodeJS.Signals | null = null;
  /** Null: not started yet, or it could not be started. */
  child: Child | null = null;
  /** Why it could not be started; null: it was started, or is being started. */
  fault: unknown = null;
  /** Resolves when it has ended, or could not be started. */
  readonly gone: Promise<void>;
  readonly #stderr = new StderrTail();
  #wanted: 'SIGTERM' | 'SIGKILL' | null = null;
  /** Called when the SDK has read everything and can take more. */
  #read: (() => void) | null = null;

  constructor(starting: Promise<Child>) {
    super();
    this.setMaxListeners(0);
    this.on('error', () => {}); // the event is for the SDK; without a listener Node would throw it
    for (const stream of [this.stdin, this.stdout]) stream.on('error', () => {});
    this.gone = this.#run(starting);
  }

  /** The end of its stderr. */
  get stderrTail(): string {
    return this.#stderr.text;
  }

  /** How it ended; null: it runs. */
  get ending(): string | null {
    if (this.fault !== null) return `before it had started: ${String(this.fault)}`;
    if (this.exitCode === null && this.signalCode === null) return null;
    const how = this.signalCode === null ? `with code ${this.exitCode}` : `by ${this.signalCode}`;
    return this.stderrTail === '' ? how : `${how}: ${this.stderrTail}`;
  }

  kill(signal: NodeJS.Signals): boolean {
    this.killed = true;
    this.#wanted = signal === 'SIGKILL' ? 'SIGKILL' : 'SIGTERM';
    this.child?.kill(this.#wanted);
    return true;
  }

  async #run(starting: Promise<Child>): Promise<void> {
    try {
      this.child = await starting;
    } catch (error) {
      this.fault = error;
      this.stdin.resume(); // nobody reads it
      this.stdout.push(null);
      this.emit('error', error);
      return;
    }
    const { child } = this;
    if (this.#wanted !== null) child.kill(this.#wanted);
    void this.#passInput(child);
    const stderrRead = this.#stderr.read(child.stderr);
    await this.#passOutput(child);
    const { code, signal } = await child.exited;
    await stderrRead;
    this.exitCode = code;
    this.signalCode = signal as NodeJS.Signals | null;
    this.stdout.push(null);
    this.emit('exit', code, signal);
  }

  async #passInput(child: Child): Promise<void> {
    try {
      for await (const chunk of this.stdin) {
        await new Promise<void>((taken) => child.stdin.write(escapeSeparators(chunk), taken));
      }
      child.stdin.end();
    } catch {
      // The SDK has destroyed it.
    }
  }

  #drained(): Promise<void> {
    return new Promise((resolve) => {
      this.#read = resolve;
      this.stdout.once('close', resolve);
    });
  }

  async #passOutput(child: Child): Promise<void> {
    try {
      for await (const chunk of child.stdout) {
        if (!this.stdout.push(chunk) && !this.stdout.destroyed) await this.#drained();
      }
    } catch {
      // The pipe broke. The exit code says how the process ended.
    }
  }
}

/**
 * The SDK does not escape U+2028 and U+2029, and some readers end a line there. In JSON they occur only inside of strings. The SDK writes
 * each message whole, so no character is cut.
 */
function escapeSeparators(chunk: Uint8Array): Uint8Array | string {
  const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
  if (!bytes.includes(SEPARATORS)) return chunk;
  return bytes.toString('utf8').replace(/[\u2028\u2029]/g, (mark) => (mark === '\u2028' ? '\\u2028' : '\\u2029'));
}

/** How both of them begin in UTF-8. */
const SEPARATORS = Buffer.from([0xe2, 0x80]);
