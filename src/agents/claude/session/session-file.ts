import type { AgentEvent } from '../../../ports/agent.ts';
import { type Chain, leafOf } from '../transcript/chain.ts';
import type { Entry } from '../transcript/entries.ts';
import type { Transcript } from '../transcript/file.ts';
import { Following } from '../transcript/position.ts';
import { TranscriptReader } from '../transcript/reader.ts';
import { Sealer } from './seal.ts';

type ProofEvent = Extract<AgentEvent, { type: 'proof' }>;

const NEWLINE = 10;
/** A longer transcript is not copied, because the copy has to fit into memory. */
const MAX_COPY_BYTES = 512 * 1024 * 1024;

/** The transcript of one open session. Reads only what is new, one read at a time. */
export class SessionFile {
  readonly transcript: Transcript;
  /** Seals the part that was copied. */
  readonly sealer: Sealer;
  readonly #reader: TranscriptReader;
  #reading: Promise<void> = Promise.resolve();
  /** The last read failed: it is not a file, or the disk failed. */
  #unreadable = false;
  /** Entries that were added since `mark`, each with its parent. */
  #fresh = new Map<string, string | null>();
  /** Those of them that follow from the prompt; null: there was no prompt. */
  #following: Following | null;

  /** `prompt`: the one in flight, when Claude has moved to this file with it. */
  constructor(transcript: Transcript, prompt: string | null = null) {
    this.transcript = transcript;
    this.#reader = new TranscriptReader(transcript);
    this.sealer = new Sealer(transcript);
    this.#following = prompt === null ? null : new Following(prompt);
  }

  /** Reads what is new. Null: there is no file, or it cannot be read. */
  async position(): Promise<string | null> {
    await this.read();
    return this.#reader.present && !this.#unreadable ? this.#reader.position : null;
  }

  /** As of the last read. Null: there is no file, or it cannot be read. */
  get chain(): Chain | null {
    return this.#reader.present && !this.#unreadable ? this.#reader.chain : null;
  }

  /** The position when this entry was the last one, as of the last read. Null: it is not there. */
  positionAt(uuid: string): string | null {
    return this.#reader.index.positionAt(uuid);
  }

  /**
   * The compaction whose summary the model gets in place of what came before, if Claude continues from this entry (left out: from
   * the leaf). Null: there is none. As of the last read.
   */
  compactionAt(uuid: string | null = this.chain?.leaf ?? null): string | null {
    return uuid === null ? null : this.#reader.index.compactionOf(uuid);
  }

  /** All later entries are new, and this prompt comes next. */
  async mark(prompt: string): Promise<void> {
    await this.read();
    this.#fresh = new Map();
    this.#following = new Following(prompt);
  }

  /** Never rejects: the position of a file that cannot be read is null. */
  read(): Promise<void> {
    this.#reading = this.#reading.then(() => this.#readOn());
    return this.#reading;
  }

  /** Whether an entry is new since `mark`, and is the prompt or follows from it, as of the last read. */
  has(uuid: string): boolean {
    return this.#fresh.has(uuid) && this.#following?.has(uuid) === true;
  }

  /**
   * The position by what follows from the prompt alone, as of the last read. Null: the prompt is not there. When somebody else
   * has continued from there, the position of the file is another one.
   */
  get ownPosition(): string | null {
    const last = this.#unreadable ? null : (this.#following?.last ?? null);
    return last === null ? null : this.#reader.index.positionAt(last);
  }

  /**
   * Whether the prompt follows the expected position, as of the last read. New entries that Claude put between them are skipped.
   * `expected` null: the prompt must be the first of its session. Returns null while the prompt is not in the file.
   */
  landing(uuid: string, expected: string | null): ProofEvent | null {
    let parent = this.#fresh.get(uuid);
    if (parent === undefined) return null;
    // When the session continues under another id, Claude has copied the old entries, so all are new.
    const leaf = expected === null ? null : leafOf(expected);
    while (parent !== null && parent !== leaf && this.#fresh.has(parent)) parent = this.#fresh.get(parent) ?? null;
    const landed = parent === null ? null : (this.#reader.index.positionAt(parent) ?? `after ${parent}`);
    const detail = `the prompt landed ${landed === null ? 'in an empty session' : `at ${landed}`}`;
    if (landed === expected) return { type: 'proof', proof: 'proved', detail };
    return { type: 'proof', proof: 'refuted', detail: `${detail}, not at ${expected ?? 'the beginning'}` };
  }

  /** Copies the bytes of all whole lines from `from` on, and extends the seal over them. Null: they cannot be read. */
  async copy(from: number): Promise<Uint8Array | null> {
    const bytes = await this.#bytes(from);
    if (bytes !== null) await this.sealer.extend(from, bytes);
    return bytes;
  }

  async #bytes(from: number): Promise<Uint8Array | null> {
    try {
      const read = await this.transcript.read({ from, most: MAX_COPY_BYTES });
      if (read === null || read.size < from || read.size - from > MAX_COPY_BYTES) return null;
      return read.bytes.subarray(0, read.bytes.lastIndexOf(NEWLINE) + 1);
    } catch {
      return null;
    }
  }

  async #readOn(): Promise<void> {
    try {
      for await (const entries of this.#reader.read()) for (const entry of entries) this.#note(entry);
      this.#unreadable = false;
    } catch {
      this.#unreadable = true;
    }
  }

  #note(entry: Entry): void {
    this.#following?.add(entry);
    const { uuid, parentUuid } = entry;
    if (typeof uuid === 'string') this.#fresh.set(uuid, typeof parentUuid === 'string' ? parentUuid : null);
  }
}
