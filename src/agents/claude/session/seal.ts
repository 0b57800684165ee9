import { createHash, type Hash } from 'node:crypto';
import { setImmediate as yieldToOthers } from 'node:timers/promises';
import { parseObject } from '../../shared/json.ts';
import type { Transcript } from '../transcript/file.ts';

/** The hash of the first bytes of a file. */
export interface Seal {
  readonly bytes: number;
  readonly sha256: string;
}

const PIECE_BYTES = 1024 * 1024;

/**
 * Seals the beginning of a growing file. A position shows which entries a file has, not their content: an edited line keeps its
 * uuid. The time to extend the seal depends on what is added, not on the length of the file.
 */
export class Sealer {
  readonly #file: Transcript;
  #hash: Hash = createHash('sha256');
  #bytes = 0;

  constructor(file: Transcript) {
    this.#file = file;
  }

  /** Null: nothing is sealed yet. */
  get seal(): Seal | null {
    return this.#bytes === 0 ? null : { bytes: this.#bytes, sha256: this.#hash.copy().digest('hex') };
  }

  /** Seals what the file holds up to `upTo`, and the bytes that follow there. */
  async extend(upTo: number, bytes: Uint8Array): Promise<void> {
    if (upTo !== this.#bytes) await this.#readUpTo(upTo);
    this.#hash.update(bytes);
    this.#bytes += bytes.length;
  }

  /** Whether the file still begins as it did when it was sealed. If so, the seal can be extended from there. */
  async holds({ bytes, sha256 }: Seal): Promise<boolean> {
    await this.#readUpTo(bytes);
    return this.#bytes === bytes && this.seal?.sha256 === sha256;
  }

  /** Reads up to `end`, or as far as the file can be read. */
  async #readUpTo(end: number): Promise<void> {
    this.#hash = createHash('sha256');
    this.#bytes = 0;
    while (this.#bytes < end) {
      const most = Math.min(PIECE_BYTES, end - this.#bytes);
      const bytes = (await this.#file.read({ from: this.#bytes, most }))?.bytes;
      if (bytes === undefined || bytes.length === 0) return;
      this.#hash.update(bytes);
      this.#bytes += bytes.length;
      if (bytes.length === PIECE_BYTES) await yieldToOthers();
    }
  }
}

/** What we have to know when a session is opened again. */
interface Memo {
  /** What the session has cost so far, in dollars, by Claude's count. */
  readonly costUsd: number | null;
  /** Of the part of the transcript that was copied. */
  readonly seal: Seal | null;
  /** The compaction with which the part begins that the model gets; null: none. */
  readonly compaction: string | null;
  /** A turn or the conversation has chosen the model that the transcript names. Claude would use that model again. */
  readonly chosenModel: boolean;
}

/** Null: there is nothing to remember. */
export function renderMemo({ costUsd, seal, compaction, chosenModel }: Memo): string | null {
  if (costUsd === null && seal === null && compaction === null && !chosenModel) return null;
  return JSON.stringify({
    ...{ costUsd, ...seal },
    ...(compaction === null ? {} : { compaction }),
    ...(chosenModel ? { chosenModel } : {}),
  });
}

/** Unknown fields are ignored. */
export function parseMemo(memo: string | null | undefined): Memo {
  const { costUsd, bytes, sha256, compaction, chosenModel } = parseObject(memo ?? '') ?? {};
  return {
    costUsd: typeof costUsd === 'number' ? costUsd : null,
    seal: typeof bytes === 'number' && typeof sha256 === 'string' ? { bytes, sha256 } : null,
    compaction: typeof compaction === 'string' ? compaction : null,
    chosenModel: chosenModel === true,
  };
}
