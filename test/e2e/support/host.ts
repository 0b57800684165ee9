import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { ThroughlineError } from '../../../src/core/errors.ts';
import type { ConversationTracker } from '../../../src/library/tracker/tracker.ts';
import type { Engine } from '../../../src/ports/engine.ts';
import type { Tasks } from '../../../src/ports/tasks.ts';
import type { HostCalls } from './host-program.ts';

type Remote<T> = {
  [K in keyof T]: T[K] extends (...args: infer A) => infer R ? (...args: A) => Promise<Awaited<R>> : never;
};

const PROGRAM = fileURLToPath(new URL('host-program.ts', import.meta.url));

/** Another process with Throughline open. Every call is answered from there. */
export class Host {
  readonly engine = this.#remote<Engine>('engine');
  readonly tracker = this.#remote<ConversationTracker>('tracker');
  readonly tasks = this.#remote<Tasks>('tasks');
  readonly calls = this.#remote<HostCalls>('calls');
  readonly #child: ChildProcess;
  readonly #waiting = new Map<number, PromiseWithResolvers<unknown>>();
  readonly #as: string | null;

  static async start(options: { home: string; settings: unknown; engine: object }): Promise<Host> {
    const child = spawn(process.execPath, [PROGRAM, JSON.stringify(options)], { stdio: ['pipe', 'pipe', 'inherit'] });
    const host = new Host(child, null);
    await host.calls.ready();
    return host;
  }

  private constructor(child: ChildProcess, as: string | null, shared?: Host) {
    this.#child = child;
    this.#as = as;
    if (shared) this.#waiting = shared.#waiting;
    else this.#listen();
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  /** Ends it as a crash does, and waits until it is gone. */
  async kill(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const gone = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await gone;
  }

  /** What it does on behalf of another owner. */
  as(owner: string): Host {
    return new Host(this.#child, owner, this);
  }

  #remote<T>(on: string): Remote<T> {
    const call = (_: unknown, name: string | symbol) => {
      return (...args: unknown[]) => this.#call(on, String(name), args);
    };
    return new Proxy({}, { get: call }) as Remote<T>;
  }

  #call(on: string, name: string, args: unknown[]): Promise<unknown> {
    lastCall += 1;
    const answer = Promise.withResolvers<unknown>();
    this.#waiting.set(lastCall, answer);
    this.#child.stdin?.write(`${JSON.stringify({ id: lastCall, as: this.#as, on, name, args })}\n`);
    return answer.promise;
  }

  #listen(): void {
    this.#child.stdin?.on('error', () => {}); // it was killed; `exit` tells
    createInterface({ input: this.#child.stdout as NodeJS.ReadableStream }).on('line', (line) => {
      const { id, value, error } = JSON.parse(line);
      const answer = this.#waiting.get(id);
      this.#waiting.delete(id);
      if (error) answer?.reject(new ThroughlineError(error.code, error.message));
      else answer?.resolve(value);
    });
    this.#child.once('exit', () => {
      for (const answer of this.#waiting.values()) answer.reject(new Error('the process has ended'));
    });
  }
}

let lastCall = 0;
