import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { ThroughlineError } from '../../../src/core/errors.ts';
import type { Engine } from '../../../src/ports/engine.ts';
import type { Tasks } from '../../../src/ports/tasks.ts';
import type { ConversationTracker } from '../../../src/ports/tracker.ts';
import { testProgram } from '../../program.ts';
import type { HostCalls } from './host-program.ts';

type Remote<T> = {
  [K in keyof T]: T[K] extends (...args: infer A) => infer R ? (...args: A) => Promise<Awaited<R>> : never;
};

const PROGRAM = testProgram(new URL('host-program.ts', import.meta.url));

/** The calls to one process that wait for their result, for all owners. `ended`: how the process has ended; null while it runs. */
interface Calls {
  readonly waiting: Map<number, PromiseWithResolvers<unknown>>;
  ended: Error | null;
}

/** Another process that has Throughline open. Every call runs there. */
export class Host {
  readonly engine = this.#remote<Engine>('engine');
  readonly tracker = this.#remote<ConversationTracker>('tracker');
  readonly tasks = this.#remote<Tasks>('tasks');
  readonly calls = this.#remote<HostCalls>('calls');
  readonly #child: ChildProcess;
  readonly #calls: Calls;
  readonly #as: string | null;

  /** Starts the process. `calls.ready()` resolves when Throughline is open there. */
  static start(options: { home: string; settings: unknown; engine: object }): Host {
    return new Host(spawn(process.execPath, [PROGRAM, JSON.stringify(options)], { stdio: 'pipe' }), null);
  }

  private constructor(child: ChildProcess, as: string | null, shared?: Host) {
    this.#child = child;
    this.#as = as;
    this.#calls = shared ? shared.#calls : { waiting: new Map(), ended: null };
    if (!shared) this.#listen();
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  /** Kills the process, and waits until it has ended. */
  async kill(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const gone = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await gone;
  }

  /** The same process, with every call made for another owner. */
  as(owner: string): Host {
    return new Host(this.#child, owner, this);
  }

  #remote<T>(target: string): Remote<T> {
    const call = (_: unknown, name: string | symbol) => {
      return (...args: unknown[]) => this.#call(target, String(name), args);
    };
    return new Proxy({}, { get: call }) as Remote<T>;
  }

  #call(target: string, name: string, args: unknown[]): Promise<unknown> {
    if (this.#calls.ended) return Promise.reject(this.#calls.ended);
    lastCall += 1;
    const answer = Promise.withResolvers<unknown>();
    this.#calls.waiting.set(lastCall, answer);
    this.#child.stdin?.write(`${JSON.stringify({ id: lastCall, as: this.#as, target, name, args })}\n`);
    return answer.promise;
  }

  #listen(): void {
    this.#child.stdin?.on('error', () => {}); // the process was killed: `close` below reports it
    createInterface({ input: this.#child.stdout as NodeJS.ReadableStream }).on('line', (line) => {
      const { id, value, error } = JSON.parse(line);
      const answer = this.#calls.waiting.get(id);
      this.#calls.waiting.delete(id);
      if (error) answer?.reject(new ThroughlineError(error.code, error.message));
      else answer?.resolve(value);
    });
    const stderr: string[] = [];
    this.#child.stderr?.setEncoding('utf8').on('data', (text: string) => stderr.push(text));
    // `close` and not `exit`: it comes after everything that the process wrote was read.
    this.#child.once('close', (code, signal) => {
      const message = `host ${this.pid} has ended (exit code ${code}, signal ${signal}); it wrote:\n${stderr.join('')}`;
      this.#calls.ended = new Error(message);
      for (const answer of this.#calls.waiting.values()) answer.reject(this.#calls.ended);
    });
  }
}

let lastCall = 0;
