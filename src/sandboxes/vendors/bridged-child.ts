import { randomUUID } from 'node:crypto';
import { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { hasCode } from '../../core/errors.ts';
import type { ByteSink, Child, SandboxProcess, SpawnOptions } from '../../ports/sandbox.ts';
import type { Exit } from './inside/programs.ts';
import { PATIENCE_MS } from './inside/protocol.ts';
import { AtRest, type MachineBridge } from './machine-bridge.ts';

/** After this time without an answer, the bridge must have ended the program. */
const LOST_MS = 2 * PATIENCE_MS;
const AGAIN_MS = 200;
/** The machine is gone, and the program with it. */
const LOST: Exit = { code: null, signal: 'SIGKILL' };
const MOST_WAITING_BYTES = 64 * 1024;
/** How often we check whether the output of an ended program is read, and after how many checks without progress we stop waiting. */
const LOOK_MS = 1_000;
const MOST_LOOKS = 10;

/** Starts a program in a machine. `identityOf`: makes the stored identity. */
export async function spawnBridged(
  bridge: MachineBridge,
  command: readonly string[],
  options: SpawnOptions,
  identityOf: (local: SandboxProcess) => SandboxProcess,
): Promise<Child> {
  const key = randomUUID();
  const { head } = await bridge.call('spawn', { ...options, key, command });
  return new BridgedChild(bridge, key, identityOf(head));
}

type Asking = MachineBridge['call'];

class BridgedChild implements Child {
  readonly identity: SandboxProcess;
  readonly stdin: Input;
  readonly stdout: Output;
  readonly stderr: Output;
  readonly exited: Promise<Exit>;
  alive = true;
  readonly #bridge: MachineBridge;
  readonly #key: string;
  #killed = false;

  constructor(bridge: MachineBridge, key: string, identity: SandboxProcess) {
    this.identity = identity;
    this.#bridge = bridge;
    this.#key = key;
    const ask: Asking = (name, args, options) => bridge.call(name, args, { ...options, wake: false });
    this.stdin = new Input(ask, key);
    this.stdout = new Output(ask, key, 'stdout');
    this.stderr = new Output(ask, key, 'stderr');
    const release = bridge.use();
    this.exited = this.#ended(ask).then(async (exit) => {
      this.alive = false;
      release();
      this.stdin.drop();
      await Promise.all([this.stdout, this.stderr].map((output) => output.over(this.#killed ? 1 : MOST_LOOKS)));
      return exit;
    });
  }

  kill(signal: 'SIGTERM' | 'SIGKILL'): void {
    if (!this.alive) return;
    this.#killed ||= signal === 'SIGKILL';
    void unlessLost(() => this.#bridge.call('kill', { key: this.#key, signal }, { wake: false }));
  }

  /** Asks without a pause: the bridge ends a program that nobody asks about. */
  async #ended(ask: Asking): Promise<Exit> {
    for (;;) {
      const answer = await unlessLost(() => ask('exit', { key: this.#key }));
      if (answer === null) return LOST;
      if (answer.head !== null) return answer.head;
    }
  }
}

/** Asks again while the machine cannot be reached. Null: it or the program is gone. */
async function unlessLost<T>(ask: () => Promise<T>): Promise<T | null> {
  for (const since = performance.now(); ; await sleep(AGAIN_MS)) {
    try {
      return await ask();
    } catch (error) {
      const isGone = hasCode(error, 'not_found');
      if (isGone || error instanceof AtRest || performance.now() - since > LOST_MS) return null;
    }
  }
}

class Output extends Readable {
  readonly #ask: Asking;
  readonly #key: string;
  readonly #name: 'stdout' | 'stderr';
  #from = 0;
  #isFetching = false;

  constructor(ask: Asking, key: string, name: 'stdout' | 'stderr') {
    super();
    this.#ask = ask;
    this.#key = key;
    this.#name = name;
    this.on('error', () => {}); // it was destroyed; `exited` reports the end
  }

  override _read(): void {
    void this.#fetch();
  }

  async #fetch(): Promise<void> {
    this.#isFetching = true;
    for (;;) {
      const args = { key: this.#key, name: this.#name, from: this.#from };
      const answer = await unlessLost(() => this.#ask('output', args));
      const bytes = answer?.bytes ?? Buffer.alloc(0);
      this.#from += bytes.length;
      if (bytes.length > 0) this.push(bytes);
      const isEnd = answer === null || answer.head.isEnd;
      if (isEnd) this.push(null);
      if (isEnd || bytes.length > 0) break;
    }
    this.#isFetching = false;
  }

  /** Waits until it was read to its end, or nobody reads it. */
  async over(mostLooks: number): Promise<void> {
    const closed = new Promise<void>((resolve) => void this.once('close', resolve));
    let [withoutProgress, before] = [0, -1];
    const timer = setInterval(() => {
      const read = this.#from - this.readableLength;
      withoutProgress = read === before && !this.#isFetching ? withoutProgress + 1 : 0;
      before = read;
      const isUnread = this.readableFlowing === null && !this.readableDidRead;
      if (withoutProgress >= mostLooks || isUnread) this.destroy();
    }, LOOK_MS);
    if (!this.closed) await closed;
    clearInterval(timer);
  }
}

class Input implements ByteSink {
  readonly #ask: Asking;
  readonly #key: string;
  #waiting: { readonly bytes: Buffer; readonly taken: (() => void) | undefined }[] = [];
  #size = 0;
  #from = 0;
  #isEnd = false;
  #isSending = false;
  #isOver = false;

  constructor(ask: Asking, key: string) {
    this.#ask = ask;
    this.#key = key;
  }

  write(content: string | Uint8Array, taken?: () => void): boolean {
    const bytes = Buffer.from(content);
    this.#waiting.push({ bytes, taken });
    this.#size += bytes.length;
    void this.#send();
    return this.#size < MOST_WAITING_BYTES;
  }

  end(): void {
    this.#isEnd = true;
    void this.#send();
  }

  /** The program has ended, and will not read the rest. */
  drop(): void {
    this.#isOver = true;
    for (const { taken } of this.#waiting.splice(0)) taken?.();
  }

  async #send(): Promise<void> {
    if (this.#isSending) return;
    this.#isSending = true;
    let isEndSent = false;
    while (!this.#isOver && (this.#waiting.length > 0 || (this.#isEnd && !isEndSent))) {
      const [parts, isEnd] = [this.#waiting, this.#isEnd];
      this.#waiting = [];
      const bytes = Buffer.concat(parts.map((part) => part.bytes));
      await this.#deliver(bytes, isEnd);
      this.#size -= bytes.length;
      isEndSent = isEnd;
      for (const { taken } of parts) taken?.();
    }
    this.#isSending = false;
  }

  /** Returns when the program has read the bytes, or has ended. */
  async #deliver(bytes: Buffer, isEnd: boolean): Promise<void> {
    const [key, from] = [this.#key, this.#from];
    this.#from += bytes.length;
    let answer = await unlessLost(() => this.#ask('input', { key, from, isEnd }, { bytes }));
    while (answer?.head === false && !this.#isOver) {
      answer = await unlessLost(() => this.#ask('input', { key, from: this.#from, isEnd }));
    }
  }
}
