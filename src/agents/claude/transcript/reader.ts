import { closeSync, constants, fstatSync, openSync, readSync, statSync } from 'node:fs';
import { setImmediate as yieldToOthers } from 'node:timers/promises';
import { type Chain, ChainIndex, positionOf } from './chain.ts';
import { type Entry, EntryReader } from './entries.ts';

/** A long file is read in pieces: it does not fill the memory, and does not block everything else. */
const PIECE_BYTES = 1024 * 1024;
const NEWLINE = 10;

/**
 * Follows the file of one session. It remembers how far it has read and how long the chain is, so that the time for a turn
 * depends on what the turn wrote, not on the length of the session. One read at a time.
 *
 * Reads are synchronous: what a turn wrote is in the page cache, and is read faster than an asynchronous read starts.
 */
export class TranscriptReader {
  readonly #file: string;
  #lines = new EntryReader();
  #index = new ChainIndex();
  #offset = 0;
  /** Bytes of an incomplete last line, after `#offset`. */
  #torn = 0;
  #inode: bigint | null = null;
  /** Size and time of the file when all of it had been read; null: not all of it was read. */
  #seen: { readonly size: bigint; readonly mtimeNs: bigint } | null = null;

  constructor(file: string) {
    this.#file = file;
  }

  /** Whether the file existed at the last read. */
  get present(): boolean {
    return this.#inode !== null;
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

  /** The position when this entry was the last one; null: it is not there. */
  positionAt(uuid: string): string | null {
    return this.#index.positionAt(uuid);
  }

  /** See `ChainIndex`. As of the last read. */
  compactionOf(uuid: string): string | null {
    return this.#index.compactionOf(uuid);
  }

  /** What was appended since the last read, in order, in pieces of about a megabyte. */
  async *read(): AsyncGenerator<readonly Entry[]> {
    for (let piece = this.#next(); piece !== null; piece = this.#next()) {
      yield piece;
      if (this.#seen === null) await yieldToOthers();
    }
  }

  /** Reads on without returning entries. */
  async skip(): Promise<this> {
    for await (const _ of this.read());
    return this;
  }

  /** Null: there are no more whole lines. */
  #next(): Entry[] | null {
    if (this.#unchanged()) return null;
    const fd = openToRead(this.#file);
    if (fd === null) {
      this.#forget();
      return null;
    }
    try {
      const { size, ino, mtimeNs } = fstatSync(fd, { bigint: true });
      if (this.#inode !== null && (ino !== this.#inode || !this.#goesOn(fd))) this.#forget();
      this.#inode = ino;
      const piece = this.#piece(fd, Number(size));
      this.#seen = this.#offset + this.#torn === Number(size) ? { size, mtimeNs } : null;
      return piece;
    } finally {
      closeSync(fd);
    }
  }

  /** One system call instead of five: this is called before every prompt, and during turns. */
  #unchanged(): boolean {
    if (this.#seen === null) return false;
    const now = statSync(this.#file, { bigint: true, throwIfNoEntry: false });
    return now?.ino === this.#inode && now?.size === this.#seen.size && now?.mtimeNs === this.#seen.mtimeNs;
  }

  /** An incomplete line is left for the next read, unless it fills the piece: `EntryReader` then keeps what has come of it. */
  #piece(fd: number, size: number): Entry[] | null {
    const buffer = Buffer.allocUnsafe(Math.min(PIECE_BYTES, size - this.#offset));
    const bytes = buffer.subarray(0, readSync(fd, buffer, 0, buffer.length, this.#offset));
    const taken = bytes.lastIndexOf(NEWLINE) + 1 || (bytes.length === PIECE_BYTES ? PIECE_BYTES : 0);
    this.#torn = bytes.length - taken;
    if (taken === 0) return null;
    this.#offset += taken;
    const lines = this.#lines.push(bytes.subarray(0, taken));
    for (const line of lines) this.#index.add(line);
    return lines.flatMap(({ entry }) => entry ?? []);
  }

  /** Whether the file still holds what we have read, judged by one byte: the newline after which we stopped. */
  #goesOn(fd: number): boolean {
    if (this.#offset === 0) return true;
    const byte = Buffer.alloc(1);
    return readSync(fd, byte, 0, 1, this.#offset - 1) === 1 && (byte[0] === NEWLINE || this.#lines.pending > 0);
  }

  #forget(): void {
    this.#lines = new EntryReader();
    this.#index = new ChainIndex();
    this.#offset = 0;
    this.#torn = 0;
    this.#inode = null;
    this.#seen = null;
  }
}

/** Null: there is no such file, or it is something else (a pipe must not block us). */
export function openToRead(file: string): number | null {
  try {
    const fd = openSync(file, constants.O_RDONLY | constants.O_NONBLOCK);
    if (fstatSync(fd).isFile()) return fd;
    closeSync(fd);
  } catch {
    // it does not exist, or may not be read
  }
  return null;
}
