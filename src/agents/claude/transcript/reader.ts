import { closeSync, constants, fstatSync, openSync, readSync, statSync } from 'node:fs';
import { setImmediate as yieldToOthers } from 'node:timers/promises';
import { MAX_LINE_BYTES } from '../../shared/lines.ts';
import { type Chain, ChainIndex, positionOf } from './chain.ts';
import { type Entry, EntryReader } from './entries.ts';

/** What was appended to a transcript: whole lines, as bytes and as entries. */
export interface Growth {
  /** The offset of the bytes in the file. 0 again after it was replaced or cut: a copy has to start again. */
  readonly from: number;
  readonly bytes: Uint8Array;
  readonly entries: readonly Entry[];
}

/** A long file is read in pieces: it does not fill the memory, and does not block everything else. */
const PIECE_BYTES = 1024 * 1024;
/** Enough for the longest turn; the parent of a new entry is hardly ever older. */
const REMEMBERED_ENTRIES = 8_192;
const NEWLINE = 10;

/**
 * Follows the file of one session. It remembers how far it has read and how long the chain is, so that the time for a turn
 * depends on what the turn wrote, not on the length of the session. One read at a time.
 *
 * Reads are synchronous: what a turn wrote is in the page cache, and is read faster than an asynchronous read starts.
 */
export class TranscriptReader {
  readonly file: string;
  readonly #keep: number;
  #lines = new EntryReader();
  #index: ChainIndex;
  #offset = 0;
  #torn = 0;
  #inode: bigint | null = null;
  /** Size and time of the file when all of it had been read; null: not all of it was read. */
  #seen: { readonly size: bigint; readonly mtimeNs: bigint } | null = null;
  #until = Number.POSITIVE_INFINITY;

  constructor(file: string, keep = REMEMBERED_ENTRIES) {
    this.file = file;
    this.#keep = keep;
    this.#index = new ChainIndex(keep);
  }

  /** Whether the file existed at the last read. */
  get present(): boolean {
    return this.#inode !== null;
  }

  /** As of the last read. An incomplete last line is a defect only when nobody writes any more. */
  get chain(): Chain {
    const chain = this.#index.chain();
    if (this.#torn === 0) return chain;
    return { ...chain, defects: [...chain.defects, { kind: 'torn_tail', line: this.#lines.lines + 1, uuid: null }] };
  }

  /** As of the last read. Null: there is no chain. `chain` shows whether it is whole. */
  get position(): string | null {
    return positionOf(this.#index.chain());
  }

  /** The position when this entry was the last one; null: it is not there, or too long ago. */
  positionAt(uuid: string): string | null {
    return this.#index.positionAt(uuid);
  }

  /** What was appended since the last read, in order, in pieces of about a megabyte. */
  async *read(): AsyncGenerator<Growth> {
    for (let piece = this.#next(); piece !== null; piece = this.#next()) {
      yield piece;
      if (piece.bytes.length >= PIECE_BYTES / 2) await yieldToOthers();
    }
    if (this.#index.lost) await this.#countAgain();
  }

  /** Reads on without returning entries. */
  async skip(): Promise<this> {
    for await (const _ of this.read());
    return this;
  }

  /** Null: there are no more whole lines. */
  #next(): Growth | null {
    if (this.#unchanged()) return null;
    const fd = openToRead(this.file);
    if (fd === null) {
      this.#forget();
      return null;
    }
    try {
      const { size, ino, mtimeNs } = fstatSync(fd, { bigint: true });
      if (this.#inode !== null && (ino !== this.#inode || !this.#goesOn(fd))) this.#forget();
      this.#inode = ino;
      const piece = this.#piece(fd, Math.min(Number(size), this.#until));
      this.#seen = this.#offset + this.#torn === Number(size) ? { size, mtimeNs } : null;
      return piece;
    } finally {
      closeSync(fd);
    }
  }

  /** One system call instead of five: this is called before every prompt, and during turns. */
  #unchanged(): boolean {
    if (this.#seen === null) return false;
    const now = statSync(this.file, { bigint: true, throwIfNoEntry: false });
    return now?.ino === this.#inode && now?.size === this.#seen.size && now?.mtimeNs === this.#seen.mtimeNs;
  }

  #piece(fd: number, size: number): Growth | null {
    const left = size - this.#offset;
    for (let length = PIECE_BYTES; ; length *= 4) {
      const buffer = Buffer.allocUnsafe(Math.min(length, left));
      const bytes = buffer.subarray(0, readSync(fd, buffer, 0, buffer.length, this.#offset));
      const whole = bytes.lastIndexOf(NEWLINE) + 1;
      if (whole > 0) return this.#take(bytes.subarray(0, whole));
      if (bytes.length >= left || bytes.length < buffer.length) {
        this.#torn = bytes.length;
        return null;
      }
      // A line that is too long is read in pieces; `EntryReader` drops it.
      if (length > MAX_LINE_BYTES) return this.#take(bytes);
    }
  }

  #take(bytes: Uint8Array): Growth {
    const from = this.#offset;
    const entries: Entry[] = [];
    for (const line of this.#lines.push(bytes)) {
      this.#index.add(line);
      if (line.entry !== null) entries.push(line.entry);
    }
    this.#offset += bytes.length;
    this.#torn = 0;
    return { from, bytes, entries };
  }

  /** Whether the file still holds what we have read, judged by one byte: the newline after which we stopped. */
  #goesOn(fd: number): boolean {
    if (this.#offset === 0) return true;
    const byte = Buffer.alloc(1);
    return readSync(fd, byte, 0, 1, this.#offset - 1) === 1 && (byte[0] === NEWLINE || this.#lines.pending > 0);
  }

  #forget(): void {
    this.#lines = new EntryReader();
    this.#index = new ChainIndex(this.#keep);
    this.#offset = 0;
    this.#torn = 0;
    this.#inode = null;
    this.#seen = null;
  }

  /** The chain leads to entries that are not remembered. What was yielded stays valid; only the chain is read again. */
  async #countAgain(): Promise<void> {
    const again = new TranscriptReader(this.file, Number.POSITIVE_INFINITY);
    again.#until = this.#offset;
    await again.skip();
    if (again.#inode === this.#inode && again.#offset === this.#offset) this.#index = again.#index;
  }
}

/** Null: there is no such file, or it is something else (a pipe must not block us). */
function openToRead(file: string): number | null {
  try {
    const fd = openSync(file, constants.O_RDONLY | constants.O_NONBLOCK);
    if (fstatSync(fd).isFile()) return fd;
    closeSync(fd);
  } catch {
    // it does not exist, or may not be read
  }
  return null;
}
