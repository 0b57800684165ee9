import { closeSync, fsyncSync, openSync, unlinkSync, writeSync } from 'node:fs';
import { join } from 'node:path';

/**
 * The least that a commit must do: write as many bytes as SQLite writes to its log, and wait for the disk. Like the log, the
 * file is written from front to back and then again from the front, so that the blocks of most writes are already allocated.
 */
export class LogWrite {
  readonly #file: string;
  readonly #fd: number;
  readonly #bytes: Buffer;
  #at = 0;

  constructor(directory: string, bytes: number) {
    this.#file = join(directory, 'log-write');
    this.#fd = openSync(this.#file, 'w+');
    this.#bytes = Buffer.alloc(bytes, 7);
    writeSync(this.#fd, Buffer.alloc(LOG_BYTES));
    fsyncSync(this.#fd);
  }

  /** Writes once. Returns the milliseconds that it took. */
  once(): number {
    const start = performance.now();
    writeSync(this.#fd, this.#bytes, 0, this.#bytes.length, this.#at);
    fsyncSync(this.#fd);
    const ms = performance.now() - start;
    this.#at = (this.#at + this.#bytes.length) % (LOG_BYTES - this.#bytes.length);
    return ms;
  }

  close(): void {
    closeSync(this.#fd);
    unlinkSync(this.#file);
  }
}

/** SQLite starts its log again from the front after 1,000 pages. */
const LOG_BYTES = 4 * 1024 * 1024;
