import { noSuch } from '../../../core/errors.ts';
import type { Child, OpenSandbox, SandboxProcess, SpawnOptions } from '../../../ports/sandbox.ts';
import { MOST_KEPT_BYTES, PATIENCE_MS, WAIT_MS } from './protocol.ts';

export type Exit = Awaited<Child['exited']>;

/** A part of the output of a program. */
export interface Part {
  readonly bytes: Uint8Array;
  /** Nothing comes after it. */
  readonly isEnd: boolean;
}

/**
 * The programs that were started through the bridge. Its starter chooses a key for each, so that a repeated request starts it once. Input
 * and output have offsets for the same reason.
 */
export class Programs {
  readonly #spawn: OpenSandbox['spawn'];
  readonly #end: (process: SandboxProcess) => Promise<unknown>;
  readonly #patience: number;
  readonly #running = new Map<string, Promise<Program>>();

  constructor(
    spawn: OpenSandbox['spawn'],
    end: (process: SandboxProcess) => Promise<unknown>,
    patienceMs = PATIENCE_MS,
  ) {
    this.#spawn = spawn;
    this.#end = end;
    this.#patience = patienceMs;
  }

  async start(key: string, command: readonly string[], options: SpawnOptions): Promise<SandboxProcess> {
    let starting = this.#running.get(key);
    if (starting === undefined) {
      starting = this.#start(key, command, options);
      this.#running.set(key, starting);
    }
    return (await starting).child.identity;
  }

  async #start(key: string, command: readonly string[], options: SpawnOptions): Promise<Program> {
    try {
      const child = await this.#spawn(command, options);
      return new Program(child, this.#patience, async (isOver) => {
        if (!isOver) await this.#end(child.identity);
        this.#running.delete(key);
      });
    } catch (error) {
      this.#running.delete(key);
      throw error;
    }
  }

  /** Throws `not_found` for one that was never started, or that has ended and was removed. */
  async get(key: string): Promise<Program> {
    const found = this.#running.get(key);
    if (found === undefined) throw noSuch('program', key);
    return found;
  }
}

export class Program {
  readonly child: Child;
  readonly #outputs: { readonly stdout: Output; readonly stderr: Output };
  readonly #patience: number;
  readonly #over: (isOver: boolean) => Promise<void>;
  #exit: Exit | null = null;
  #taken = 0;
  #written: Promise<unknown> = Promise.resolve();
  #pending = 0;
  #waiting = 0;
  #timer: NodeJS.Timeout | undefined;

  /** `over`: called when nobody has asked about the program for too long; `isOver`: it has ended by itself. */
  constructor(child: Child, patienceMs: number, over: (isOver: boolean) => Promise<void>) {
    this.child = child;
    this.#patience = patienceMs;
    this.#over = over;
    this.#outputs = { stdout: new Output(child.stdout), stderr: new Output(child.stderr) };
    void child.exited.then((exit) => {
      this.#exit = exit;
    });
    this.#wait();
  }

  /** All requests about the program go through here: without requests, it is ended. */
  async asked<T>(answer: () => Promise<T>): Promise<T> {
    this.#waiting += 1;
    clearTimeout(this.#timer);
    try {
      return await answer();
    } finally {
      this.#waiting -= 1;
      if (this.#waiting === 0) this.#wait();
    }
  }

  output(name: 'stdout' | 'stderr', from: number, gone: AbortSignal): Promise<Part> {
    return this.#outputs[name].after(from, gone);
  }

  /** How it has ended; null: it has not yet. */
  async exit(gone: AbortSignal): Promise<Exit | null> {
    await waited(this.child.exited, gone);
    return this.#exit;
  }

  /**
   * `from`: the offset of the first byte. Bytes that came before are skipped. True: the program has read everything, or has ended;
   * false: not yet, and the client asks again.
   */
  async input(from: number, bytes: Uint8Array, isEnd: boolean, gone: AbortSignal): Promise<boolean> {
    const { stdin, exited } = this.child;
    const rest = bytes.subarray(Math.max(0, this.#taken - from));
    this.#taken = Math.max(this.#taken, from + bytes.length);
    if (rest.length > 0) {
      const before = this.#written;
      const written = Promise.race([new Promise<void>((resolve) => void stdin.write(rest, resolve)), exited]);
      this.#pending += 1;
      this.#written = Promise.all([before, written]).then(() => {
        this.#pending -= 1;
      });
    }
    if (isEnd) stdin.end();
    await waited(this.#written, gone);
    return this.#pending === 0;
  }

  #wait(): void {
    this.#timer = setTimeout(() => {
      for (const output of Object.values(this.#outputs)) output.drop();
      void this.#over(this.#exit !== null);
    }, this.#patience);
  }
}

/** The output of a program, kept until it was fetched. */
class Output {
  readonly #chunks: Uint8Array[] = [];
  /** The offset of the first byte that is kept. */
  #from = 0;
  #kept = 0;
  #ended = false;
  #changed = Promise.withResolvers<void>();
  #fetched = Promise.withResolvers<void>();

  constructor(source: AsyncIterable<Uint8Array>) {
    void this.#keep(source);
  }

  async #keep(source: AsyncIterable<Uint8Array>): Promise<void> {
    try {
      for await (const chunk of source) {
        this.#chunks.push(chunk);
        this.#kept += chunk.length;
        this.#tell();
        while (this.#kept > MOST_KEPT_BYTES) {
          this.#fetched = Promise.withResolvers();
          await this.#fetched.promise;
        }
      }
    } catch {
      // It was closed with the program: there is no more output.
    }
    this.#ended = true;
    this.#tell();
  }

  #tell(): void {
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
  }

  /** Drops all output that is kept. */
  drop(): void {
    this.#forget(this.#from + this.#kept);
  }

  /** Waits for output. A client that asks for an offset has received everything before it. */
  async after(from: number, gone: AbortSignal): Promise<Part> {
    this.#forget(from);
    if (this.#kept === 0 && !this.#ended) await waited(this.#changed.promise, gone);
    return { bytes: Buffer.concat(this.#chunks), isEnd: this.#ended };
  }

  #forget(until: number): void {
    while (this.#from < until) {
      const [first] = this.#chunks;
      if (first === undefined) return;
      const count = Math.min(first.length, until - this.#from);
      if (count === first.length) this.#chunks.shift();
      else this.#chunks[0] = first.subarray(count);
      this.#from += count;
      this.#kept -= count;
    }
    this.#fetched.resolve();
  }
}

/** Waits for the event, but not longer than a request may take, or its client is connected. */
export async function waited(event: Promise<unknown>, gone: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, WAIT_MS);
  const stop = () => resolve();
  gone.addEventListener('abort', stop, { once: true });
  if (gone.aborted) resolve();
  void event.then(stop);
  await promise;
  clearTimeout(timer);
  gone.removeEventListener('abort', stop);
}
