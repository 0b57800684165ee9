import { createHash, type Hash } from 'node:crypto';
import { closeSync, constants, openSync, readSync } from 'node:fs';
import { setImmediate as breathe } from 'node:timers/promises';

/** What the beginning of a file was: so many bytes, with this hash. */
export interface Seal {
  readonly bytes: number;
  readonly sha256: string;
}

const PIECE_BYTES = 1024 * 1024;

/**
 * Seals the beginning of a file, which grows. A position says which entries there are, and nothing of what is in them: a line
 * that somebody has edited keeps its uuid. What is added costs as much as it is long, however long the file is.
 */
export class Sealer {
  readonly #path: string;
  #hash: Hash = createHash('sha256');
  #bytes = 0;

  constructor(path: string) {
    this.#path = path;
  }

  /** Null: nothing is sealed. */
  get seal(): Seal | null {
    return this.#bytes === 0 ? null : { bytes: this.#bytes, sha256: this.#hash.copy().digest('hex') };
  }

  /** Seals what the file holds up to `upTo`, and then these bytes, which are there as well. */
  async extend(upTo: number, bytes: Uint8Array): Promise<void> {
    if (upTo !== this.#bytes) await this.#readUpTo(upTo);
    this.#hash.update(bytes);
    this.#bytes += bytes.length;
  }

  /** Whether the file begins as it did when it was sealed; if so, that is where sealing goes on. */
  async holds({ bytes, sha256 }: Seal): Promise<boolean> {
    await this.#readUpTo(bytes);
    return this.#bytes === bytes && this.seal?.sha256 === sha256;
  }

  /** As far as there is so much, and it can be read. */
  async #readUpTo(end: number): Promise<void> {
    this.#hash = createHash('sha256');
    this.#bytes = 0;
    const fd = openOrNull(this.#path);
    if (fd === null) return;
    try {
      const buffer = Buffer.allocUnsafe(Math.min(PIECE_BYTES, end));
      while (this.#bytes < end) {
        const length = readSync(fd, buffer, 0, Math.min(buffer.length, end - this.#bytes), this.#bytes);
        if (length === 0) return;
        this.#hash.update(buffer.subarray(0, length));
        this.#bytes += length;
        if (length === PIECE_BYTES) await breathe();
      }
    } finally {
      closeSync(fd);
    }
  }
}

function openOrNull(path: string): number | null {
  try {
    return openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch {
    return null;
  }
}
