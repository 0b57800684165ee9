import { setTimeout as sleep } from 'node:timers/promises';
import { ThroughlineError } from '../../core/errors.ts';
import type { Answer, Asked, Operations } from './inside/operations.ts';
import { BRIDGE_SETTINGS, type BridgeFile, type BridgeSettings, type Message } from './inside/protocol.ts';
import { type BridgeAddress, NotAnswered, type RequestOptions, sendToBridge } from './request.ts';
import type { Machine, MachineFile, Vendor } from './vendor.ts';

export interface BridgeProgram {
  readonly files: readonly MachineFile[];
  /** The file that is started. */
  readonly main: string;
  /** A hash of their content. */
  readonly version: string;
}

export interface MachineSettings {
  readonly vendor: Vendor;
  readonly place: string;
  /** The port of the bridge, inside. */
  readonly port: number;
  /** How long a machine stays awake after it was used. */
  readonly awakeMs: number;
  readonly program: () => Promise<BridgeProgram>;
}

/** The machine rests or is gone, so none of its programs runs. */
export class AtRest extends Error {}

interface CallOptions extends RequestOptions {
  readonly bytes?: string | Uint8Array;
  /** False: a resting machine is not woken, and `AtRest` is thrown. */
  readonly wake?: boolean;
  /** False: a repeated call would have another effect. */
  readonly repeat?: boolean;
}

type ArgsOf<Name extends keyof Operations> = Parameters<Operations[Name]>[0];
type HeadOf<Name extends keyof Operations> = Operations[Name] extends (args: never, asked: Asked) => Promise<infer A>
  ? A extends Answer<infer Head>
    ? Head
    : never
  : never;

const MOST_TRIES = 3;
const START_MS = 30_000;
const LOOK_MS = 50;
const ANSWER_MS = 5_000;

/** One machine of a vendor, and the bridge in it. Wakes or creates the machine, and starts the bridge, whenever that is needed. */
export class MachineBridge {
  readonly name: string;
  readonly #settings: MachineSettings;
  readonly #connecting = new Map<boolean, Promise<BridgeAddress>>();
  #address: BridgeAddress | null = null;
  #machine: Machine | null = null;
  #awakeUntil = 0;
  #users = 0;
  #resting: Promise<void> | null = null;
  #timer: NodeJS.Timeout | undefined;

  constructor(name: string, settings: MachineSettings) {
    this.name = name;
    this.#settings = settings;
  }

  /** Throws the errors of the bridge and of the vendor, `AtRest`, and `agent_unavailable` when the machine does not answer. */
  async call<Name extends keyof Operations>(
    name: Name,
    args: ArgsOf<Name>,
    { bytes, wake = true, repeat = true, ...options }: CallOptions = {},
  ): Promise<Message<HeadOf<Name>>> {
    for (let tries = 1; ; tries += 1) {
      const address = this.#address ?? (await this.#connected(wake));
      try {
        return await sendToBridge<HeadOf<Name>>(address, name, args, bytes, options);
      } catch (error) {
        if (!(error instanceof NotAnswered) || options.signal?.aborted) throw error;
        if (this.#address === address) this.#address = null;
        if (!repeat || tries === MOST_TRIES) throw this.#unreachable(error);
      }
    }
  }

  /** Whether its bridge answers. False also if we do not know its address yet. */
  async answers(): Promise<boolean> {
    if (this.#address === null) return false;
    return sendToBridge(this.#address, 'hello', null, '', { signal: AbortSignal.timeout(ANSWER_MS) }).then(
      () => true,
      () => false,
    );
  }

  /** Ends its programs, and keeps its files. We do not connect meanwhile: a request might wake the machine. */
  async rest(): Promise<void> {
    const machine = await this.#settings.vendor.find(this.name);
    if (!machine?.isAwake) return;
    const resting = machine.rest();
    this.#resting = resting.catch(() => {});
    await resting.finally(() => {
      this.#resting = null;
    });
  }

  /** Makes sure that it stays awake for a while. */
  async stayAwake(): Promise<void> {
    const { awakeMs } = this.#settings;
    if (this.#machine === null || this.#awakeUntil - performance.now() > awakeMs / 2) return;
    await this.#machine.extend(awakeMs);
    this.#awakeUntil = performance.now() + awakeMs;
  }

  /** Keeps the machine awake. Returns a function that ends this use. */
  use(): () => void {
    this.#users += 1;
    // If the vendor refuses more time, the machine will rest, and the next call reports that.
    this.#timer ??= setInterval(() => void this.stayAwake().catch(() => {}), this.#settings.awakeMs / 8).unref();
    return () => {
      this.#users -= 1;
      if (this.#users > 0) return;
      clearInterval(this.#timer);
      this.#timer = undefined;
    };
  }

  /** Concurrent calls connect once. */
  #connected(wake: boolean): Promise<BridgeAddress> {
    const running = this.#connecting.get(wake);
    if (running !== undefined) return running;
    const connecting = this.#connect(wake).finally(() => this.#connecting.delete(wake));
    this.#connecting.set(wake, connecting);
    return connecting;
  }

  async #connect(wake: boolean): Promise<BridgeAddress> {
    const { vendor, awakeMs } = this.#settings;
    await this.#resting;
    const machine = wake ? await vendor.wake(this.name) : await vendor.find(this.name);
    if (!machine?.isAwake) throw new AtRest(`The machine ${this.name} rests or is gone.`);
    this.#machine = machine;
    this.#awakeUntil = performance.now() + (machine.awakeForMs ?? awakeMs);
    const address = (await this.#running(machine)) ?? (await this.#started(machine));
    this.#address = address;
    return address;
  }

  /** Null: there is no bridge that answers. */
  async #running(machine: Machine, version?: string): Promise<BridgeAddress | null> {
    const { port, program } = this.#settings;
    const content = await machine.read('bridge.json');
    if (content === null) return null;
    const file = JSON.parse(Buffer.from(content).toString()) as BridgeFile;
    const address = { url: machine.address(port), token: file.token };
    const isCurrent = file.version === (version ?? (await program()).version);
    try {
      await sendToBridge(address, isCurrent ? 'hello' : 'leave', null);
      return isCurrent ? address : null;
    } catch (error) {
      if (error instanceof NotAnswered) return null;
      throw error;
    }
  }

  async #started(machine: Machine): Promise<BridgeAddress> {
    const { place, port, program } = this.#settings;
    const { files, main, version } = await program();
    const folder = `bridge-${version}`;
    await machine.write(files.map(({ name, content }) => ({ name: `${folder}/${name}`, content })));
    const settings: BridgeSettings = { version, port, folder: machine.folder, place };
    for (const deadline = performance.now() + START_MS; performance.now() < deadline; await sleep(LOOK_MS)) {
      await machine.start(['node', `${machine.folder}/${folder}/${main}`], {
        [BRIDGE_SETTINGS]: JSON.stringify(settings),
      });
      for (const again = performance.now() + START_MS / 3; performance.now() < again; await sleep(LOOK_MS)) {
        const address = await this.#running(machine, version);
        if (address !== null) return address;
      }
    }
    throw new ThroughlineError('agent_unavailable', `The bridge in the machine ${this.name} does not start.`, {
      hint: 'The machine needs "node", version 22 or newer. Choose an image or template that has it.',
    });
  }

  #unreachable(cause: unknown): ThroughlineError {
    return new ThroughlineError('agent_unavailable', `The machine ${this.name} does not answer.`, {
      hint: 'Try again. If that does not help, check the machine with the tools of its vendor.',
      cause,
    });
  }
}
