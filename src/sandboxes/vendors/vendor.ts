import { ThroughlineError } from '../../core/errors.ts';

/* What we need of a vendor of machines. */

export interface Vendor {
  /** Also the kind of its processes. */
  readonly kind: 'vercel' | 'e2b';
  /** The machine of this name; null: there is none. Does not wake it. */
  find(name: string): Promise<Machine | null>;
  /** Wakes the machine of this name, or creates it. */
  wake(name: string): Promise<Machine>;
  /** The names of all machines of this place, awake or not. */
  names(): Promise<readonly string[]>;
}

export interface MachineFile {
  /** Relative. */
  readonly name: string;
  readonly content: Uint8Array;
}

/** A machine, as it was when it was asked for. */
export interface Machine {
  readonly name: string;
  /** False: it rests. Its programs have ended; its files are kept. */
  readonly isAwake: boolean;
  /** A directory for our files. It is kept when the machine rests, and programs can write to it. It need not exist yet. */
  readonly folder: string;
  /** How long it stays awake, in milliseconds; null: unknown. */
  readonly awakeForMs: number | null;
  /** Where a port of it is reached. */
  address(port: number): string;
  /** Reads a file in `folder`. Null: there is none. */
  read(name: string): Promise<Uint8Array | null>;
  /** Writes files into `folder`, and the folders above them. */
  write(files: readonly MachineFile[]): Promise<void>;
  /** Starts a program, and does not wait for it. */
  start(command: readonly string[], env: Readonly<Record<string, string>>): Promise<void>;
  /** Keeps it awake for so long from now. */
  extend(ms: number): Promise<void>;
  /** Ends its programs, and keeps its files. */
  rest(): Promise<void>;
  /** Ends it, and deletes its files. */
  remove(): Promise<void>;
}

/** What is the same for all vendors. */
export interface VendorOptions {
  /** The names of our machines begin with it. */
  readonly prefix: string;
  /** What machines are made from; null: the vendor's default. */
  readonly image: string | null;
  readonly port: number;
  readonly awakeMs: number;
}

/** Turns what a vendor or its package throws into one of our errors. */
export async function vendorCall<T>(vendor: string, call: Promise<T>): Promise<T> {
  try {
    return await call;
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new ThroughlineError('agent_unavailable', `${vendor} refused the request, or cannot be reached: ${why}`, {
      hint: 'Check the key, and your account at the vendor. This kind of sandbox is untried against the real service: see docs/sandboxes.md.',
      cause,
    });
  }
}
