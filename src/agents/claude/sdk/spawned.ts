import { EventEmitter } from 'node:events';
import { PassThrough } from 'node:stream';
import type { Child } from '../../../ports/sandbox.ts';
import { StderrTail } from '../../shared/stderr-tail.ts';

/**
 * A process of the sandbox as the SDK wants it. The SDK must have it at once and the sandbox takes a moment to start it, so
 * both ends are held here until then.
 */
export class SpawnedClaude extends EventEmitter {
  readonly stdin = new PassThrough();
  readonly stdout = new PassThrough();
  killed = false;
  exitCode: number | null = null;
  signalCode: NodeJS.Signals | null = null;
  /** Null: it is not there yet, or never will be. */
  child: Child | null = null;
  /** Why it could not be started; null: it could, or nobody knows yet. */
  fault: unknown = null;
  /** Resolves when it is gone, or could not be started. */
  readonly gone: Promise<void>;
  readonly #stderr = new StderrTail();
  #wanted: 'SIGTERM' | 'SIGKILL' | null = null;

  constructor(starting: Promise<Child>) {
    super();
    this.setMaxListeners(0);
    this.on('error', () => {}); // told to the SDK; without any listener it would be thrown at us
    for (const stream of [this.stdin, this.stdout]) stream.on('error', () => {});
    this.gone = this.#run(starting);
  }

  /** The last of what it complained about. */
  get complaint(): string {
    return this.#stderr.text;
  }

  /** How it ended; null: it has not. */
  get ending(): string | null {
    if (this.fault !== null) return `before it had begun: ${String(this.fault)}`;
    if (this.exitCode === null && this.signalCode === null) return null;
    const how = this.signalCode === null ? `with code ${this.exitCode}` : `by ${this.signalCode}`;
    return this.complaint === '' ? how : `${how}: ${this.complaint}`;
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
      this.stdout.end();
      this.emit('error', error);
      return;
    }
    const { child } = this;
    if (this.#wanted !== null) child.kill(this.#wanted);
    this.stdin.on('data', (chunk: Buffer) => child.stdin.write(chunk));
    this.stdin.on('end', () => child.stdin.end());
    const complaints = this.#stderr.read(child.stderr);
    await this.#handOn(child);
    const { code, signal } = await child.exited;
    await complaints;
    this.exitCode = code;
    this.signalCode = signal as NodeJS.Signals | null;
    this.stdout.end();
    this.emit('exit', code, signal);
  }

  async #handOn(child: Child): Promise<void> {
    try {
      for await (const chunk of child.stdout) {
        if (!this.stdout.write(chunk)) await new Promise((resolve) => this.stdout.once('drain', resolve));
      }
    } catch {
      // The pipe broke: what matters is how the process ended.
    }
  }
}
