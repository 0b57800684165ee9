import { setImmediate as yieldToOthers } from 'node:timers/promises';
import type { FileStat } from '../../../ports/sandbox.ts';
import { type Chain, ChainIndex, positionOf } from './chain.ts';
import { type Entry, EntryReader } from './entries.ts';
import type { Transcript } from './file.ts';

/** A long file is read in pieces: it does not fill the memory, and does not block everything else. */
const PIECE_BYTES = 1024 * 1024;
const NEWLINE = 10;

/**
 * Follows the file of one session. It remembers how far it has read and how long the chain is, so that the time for a turn
 * depends on what the turn wrote, not on the length of the session. One read at a time.
 */
export class TranscriptReader {
  readonly #file: Transcript;
  #lines = new EntryReader();
  #index = new ChainIndex();
  #offset = 0;
  /** Bytes of an incomplete last line, after `#offset`. */
  #torn = 0;
  /** The file at the last read; null: there was none. */
  #lastFile: Pick<FileStat, 'id'> | null = null;
  /** The version of the file when all of it was read; null: not all of it was read. */
  #readVersion: string | null = null;

  constructor(file: Transcript) {
    this.#file = file;
  }

  /** Whether the file existed at the last read. */
  get present(): boolean {
    return this.#lastFile !== null;
  }

  /** As of the last read. An incomplete last line is a defect only when nobody writes any more. */
  get chain(): Chain {
    const chain = this.#index.chain();
    if (this.#torn + this.#lines.pending === 0) return chain;
    return { ...chain, defects: [...chain.defects, { kind: 'torn_tail', line: this.#lines.lines + 1, uuid: null }] };
  }

  /** As of the last read. Null: there is no chain. `chain` shows whether it is whole. */
  get position(): string | null {
    return positionOf(this.#index.chain());
  }

  /** As of the last read. */
  get index(): Pick<ChainIndex, 'positionAt' | 'compactionOf'> {
    return this.#index;
  }

  /** What was appended since the last read, in order, in pieces of about a megabyte. */
  async *read(): AsyncGenerator<readonly Entry[]> {
    for (let piece = await this.#next(); piece !== null; piece = await this.#next()) {
      yield piece;
      if (this.#readVersion === null) await yieldToOthers();
    }
  }

  /** Reads on without returning entries. */
  async skip(): Promise<this> {
    for await (const _ of this.read());
    return this;
  }

  /** Null: there are no more whole lines. */
  async #next(): Promise<Entry[] | null> {
    // Cheaper than reading, and called before every prompt and during turns.
    if (this.#readVersion !== null && (await this.#file.stat())?.version === this.#readVersion) return null;
    const before = this.#offset === 0 ? 0 : 1;
    const read = await this.#file.read({ from: this.#offset - before, most: before + PIECE_BYTES });
    if (read === null) {
      this.#forget();
      return null;
    }
    if (this.#lastFile !== null && (read.id !== this.#lastFile.id || !this.#continues(read.bytes))) {
      this.#forget();
      return this.#next();
    }
    this.#lastFile = read;
    const piece = this.#piece(read.bytes.subarray(before));
    this.#readVersion = this.#offset + this.#torn === read.size ? read.version : null;
    return piece;
  }

  /** An incomplete line is left for the next read, unless it fills the piece: `EntryReader` then keeps what has come of it. */
  #piece(bytes: Uint8Array): Entry[] | null {
    const taken = bytes.lastIndexOf(NEWLINE) + 1 || (bytes.length === PIECE_BYTES ? PIECE_BYTES : 0);
    this.#torn = bytes.length - taken;
    if (taken === 0) return null;
    this.#offset += taken;
    const lines = this.#lines.push(bytes.subarray(0, taken));
    for (const line of lines) this.#index.add(line);
    return lines.flatMap(({ entry }) => entry ?? []);
  }

  /** Whether the file still contains what we have read. Checks one byte: the newline after which we stopped. */
  #continues(bytes: Uint8Array): boolean {
    return this.#offset === 0 || bytes[0] === NEWLINE || (bytes.length > 0 && this.#lines.pending > 0);
  }

  #forget(): void {
    this.#lines = new EntryReader();
    this.#index = new ChainIndex();
    this.#offset = 0;
    this.#torn = 0;
    this.#lastFile = null;
    this.#readVersion = null;
  }
}
