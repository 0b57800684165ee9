import { ThroughlineError } from '../../core/errors.ts';

/* What we need of those who rent out machines. */

export interface Vendor {
  /** Also the kind of its processes. */
  readonly kind: 'vercel' | 'e2b';
  /** The machine of this name; null: there is none, or no longer. Wakes nothing. */
  find(name: string): Promise<Machine | null>;
  /** The machine of this name, awake; made when there is none. */
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
  /** False: it rests. All that ran in it has ended; its files are kept. */
  readonly isAwake: boolean;
  /** A directory that is ours, is kept when the machine rests, and can be written to by programs. Need not exist yet. */
  readonly folder: string;
  /** How long it stays awake, in milliseconds; null: nobody knows. */
  readonly awakeForMs: number | null;
  /** Where a port of it is reached. */
  address(port: number): string;
  /** Reads a file in `folder`. Null: there is none. */
  read(name: string): Promise<Uint8Array | null>;
  /** Writes files into `folder`, and the folders above them. */
  write(files: readonly MachineFile[]): Promise<void>;
  /** Starts a program, and does not wait for it. */
  start(command: readonly string[], env: Readonly<Record<string, string>>): Promise<void>;
  /** It stays awake for so long from now. */
  extend(ms: number): Promise<void>;
  /** Ends all that runs in it, and keeps its files. */
  rest(): Promise<void>;
  /** Ends it, and deletes its files. */
  remove(): Promise<void>;
}

/** What is the same for all vendors. */
export interface VendorOptions {
  /** How the names of our machines begin. */
  readonly prefix: string;
  /** What machines are made from; null: what the vendor takes. */
  readonly image: string | null;
  readonly port: number;
  readonly awakeMs: number;
}

/** What a vendor or its package throws, as one of our errors. */
export async function saidBy<T>(vendor: string, asked: Promise<T>): Promise<T> {
  try {
    return await asked;
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new ThroughlineError('agent_unavailable', `${vendor} has refused, or cannot be reached: ${why}`, {
      hint: 'Check the key, and what the vendor shows of your account. This kind of sandbox is untried against the real service: see docs/sandboxes.md.',
      cause,
    });
  }
}

/** The package of a vendor, when it is needed. */
export async function installed<T>(name: string, load: () => Promise<T>): Promise<T> {
  try {
    return await load();
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    if (code !== 'ERR_MODULE_NOT_FOUND' && code !== 'MODULE_NOT_FOUND') throw cause;
    throw new ThroughlineError('refused', `Sandboxes of this kind need the package ${name}, which is not installed.`, {
      hint: `Run "npm install ${name}" where throughline is installed.`,
      cause,
    });
  }
}
