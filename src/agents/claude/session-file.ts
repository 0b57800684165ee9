import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';
import type { AgentEvent } from '../../ports/agent.ts';
import { type Seal, Sealer } from './seal.ts';
import { type Chain, leafOf } from './transcript/chain.ts';
import type { Entry } from './transcript/entries.ts';
import { Following } from './transcript/following.ts';
import { TranscriptReader } from './transcript/reader.ts';

export type ProofEvent = Extract<AgentEvent, { type: 'proof' }>;

const NEWLINE = 10;
/** A transcript that is longer is not mirrored in one piece of memory. */
const MOST_BYTES = 512 * 1024 * 1024;
/** What a turn wrote is copied from what was read of it; when it is more than this, it is read again. */
const MOST_KEPT_BYTES = 256 * 1024;

/** The transcript of one open session. Reads only what is new, one read at a time. */
export class SessionFile {
  readonly path: string;
  readonly #reader: TranscriptReader;
  readonly #sealer: Sealer;
  #reading: Promise<void> = Promise.resolve();
  /** The last read failed: something else lies there, or the disk does. */
  #unreadable = false;
  /** What has come since `mark`: each entry with the one before it. */
  #fresh = new Map<string, string | null>();
  /** Of these, what follows from the prompt; null: there was none. */
  #following: Following | null;
  /** What was read and not copied yet, as long as it is little: whole lines that follow on each other. */
  #uncopied: { readonly from: number; readonly pieces: Uint8Array[]; length: number } | null = null;

  /** `prompt`: the one in flight, when Claude has gone on to this file with it. */
  constructor(path: string, prompt: string | null = null) {
    this.path = path;
    this.#reader = new TranscriptReader(path);
    this.#sealer = new Sealer(path);
    this.#following = prompt === null ? null : new Following(prompt);
  }

  /** Reads on, and says where the session stands; null: nowhere, there is no file. */
  async position(): Promise<string | null> {
    await this.read();
    return this.#reader.present && !this.#unreadable ? this.#reader.position : null;
  }

  /** As of the last read; null: there is no file, or it cannot be read. */
  get chain(): Chain | null {
    return this.#reader.present && !this.#unreadable ? this.#reader.chain : null;
  }

  /** Where the session stood when this entry was its last, as of the last read; null: it is not there, or too long ago. */
  positionAt(uuid: string): string | null {
    return this.#reader.positionAt(uuid);
  }

  /** Whatever comes from here on is new, and this prompt the next. */
  async mark(prompt: string): Promise<void> {
    await this.read();
    this.#fresh = new Map();
    this.#following = new Following(prompt);
  }

  /** Never rejects: what cannot be read shows as a position that is not known. */
  read(): Promise<void> {
    this.#reading = this.#reading
      .then(() => this.#readOn())
      .then(
        () => {
          this.#unreadable = false;
        },
        () => {
          this.#unreadable = true;
        },
      );
    return this.#reading;
  }

  /** Whether an entry has come since the mark, and follows from the prompt or is it, as of the last read. */
  has(uuid: string): boolean {
    return this.#fresh.has(uuid) && this.#following?.has(uuid) === true;
  }

  /**
   * Where the session stands by what follows from the prompt alone, as of the last read; null: the prompt is not there. When
   * somebody else has gone on from it meanwhile, this is not where the file stands.
   */
  get ownPosition(): string | null {
    const last = this.#unreadable ? null : (this.#following?.last ?? null);
    return last === null ? null : this.#reader.positionAt(last);
  }

  /**
   * Whether the prompt hangs on the entry that was the last one when we left, as of the last read. What Claude put between
   * them is as new as the prompt, and passed over. `expected` null: the prompt must be the first of its session. The result
   * is null while the prompt is not in the file.
   */
  landing(uuid: string, expected: string | null): ProofEvent | null {
    let parent = this.#fresh.get(uuid);
    if (parent === undefined) return null;
    // Of a session that goes on under another id all entries are new, also those that were copied.
    const leaf = expected === null ? null : leafOf(expected);
    while (parent !== null && parent !== leaf && this.#fresh.has(parent)) parent = this.#fresh.get(parent) ?? null;
    const landed = parent === null ? null : (this.#reader.positionAt(parent) ?? `after ${parent}`);
    const detail = `the prompt landed ${landed === null ? 'in an empty session' : `at ${landed}`}`;
    if (landed === expected) return { type: 'proof', proof: 'proved', detail };
    return { type: 'proof', proof: 'refuted', detail: `${detail}, not at ${expected ?? 'the beginning'}` };
  }

  /** Of what was copied so far; null: nothing was. */
  get seal(): Seal | null {
    return this.#sealer.seal;
  }

  /** Whether the part of which there is a copy is still what it was. */
  holds(seal: Seal): Promise<boolean> {
    return this.#sealer.holds(seal);
  }

  /** The bytes of all whole lines from `from` on, to be copied, and sealed with what lies before them; null: they cannot be read. */
  async copy(from: number): Promise<Uint8Array | null> {
    const read = this.#uncopied;
    this.#uncopied = null;
    const bytes = read?.from === from ? Buffer.concat(read.pieces) : this.#bytes(from);
    if (bytes !== null) await this.#sealer.extend(from, bytes);
    return bytes;
  }

  #bytes(from: number): Uint8Array | null {
    let fd: number;
    try {
      fd = openSync(this.path, constants.O_RDONLY | constants.O_NONBLOCK); // a pipe in its place must not keep us waiting
    } catch {
      return null;
    }
    try {
      const length = fstatSync(fd).size - from;
      if (length < 0 || length > MOST_BYTES) return null;
      const buffer = Buffer.allocUnsafe(length);
      const bytes = buffer.subarray(0, readSync(fd, buffer, 0, length, from));
      return bytes.subarray(0, bytes.lastIndexOf(NEWLINE) + 1);
    } catch {
      return null;
    } finally {
      closeSync(fd);
    }
  }

  async #readOn(): Promise<void> {
    for await (const { from, bytes, entries } of this.#reader.read()) {
      for (const entry of entries) this.#note(entry);
      this.#keep(from, bytes);
    }
  }

  #keep(from: number, bytes: Uint8Array): void {
    const before = this.#uncopied;
    const follows = before !== null && before.from + before.length === from;
    const kept = follows ? before : { from, pieces: [], length: 0 };
    kept.pieces.push(bytes);
    kept.length += bytes.length;
    this.#uncopied = bytes.at(-1) === NEWLINE && kept.length <= MOST_KEPT_BYTES ? kept : null;
  }

  #note(entry: Entry): void {
    this.#following?.add(entry);
    const { uuid, parentUuid } = entry;
    if (typeof uuid === 'string') this.#fresh.set(uuid, typeof parentUuid === 'string' ? parentUuid : null);
  }
}
