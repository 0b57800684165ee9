import { hasCode } from '../../../core/errors.ts';
import type { FileRead, FileStat, Folder, Range } from '../../../ports/sandbox.ts';

/** The file of one session, in a folder that the agent can write to. It need not exist. */
export class Transcript {
  readonly #folder: Folder;
  readonly #usual: string;
  readonly #others: readonly string[];

  /** `others`: where it may be if it is not at its usual path. */
  constructor(folder: Folder, usual: string, others: readonly string[] = []) {
    this.#folder = folder;
    this.#usual = usual;
    this.#others = others;
  }

  /** For people. */
  get name(): string {
    return `${this.#folder.path}/${this.#usual}`;
  }

  /** Null: there is no such file, or something else has its name: a link is not followed. */
  async stat(): Promise<FileStat | null> {
    const stat = await unlessRefused(this.#folder.stat(await this.#path()));
    return stat?.kind === 'file' ? stat : null;
  }

  /** Null: as `stat`. */
  async read(range: Range): Promise<FileRead | null> {
    return unlessRefused(this.#folder.read(await this.#path(), range));
  }

  /** Whether anything has its name, also something that cannot be read. */
  async exists(): Promise<boolean> {
    return (await this.stat()) !== null || (await this.readError()) !== null;
  }

  /** Why it cannot be read; null: it can, or there is none. */
  async readError(): Promise<string | null> {
    try {
      await this.#folder.read(await this.#path(), { most: 1 });
      return null;
    } catch (error) {
      return error instanceof Error ? error.message : String(error);
    }
  }

  /** All of it or nothing, readable only by its owner, and never over another file. */
  async put(content: string | Uint8Array): Promise<'written' | 'same' | 'exists'> {
    return this.#folder.put(await this.#path(), content);
  }

  /** False: there is no such file. */
  async append(text: string): Promise<boolean> {
    return this.#folder.append(await this.#path(), text);
  }

  async remove(): Promise<void> {
    await this.#folder.remove(await this.#path());
  }

  async #path(): Promise<string> {
    if (this.#others.length === 0 || (await this.#folder.stat(this.#usual)) !== null) return this.#usual;
    const there: string[] = [];
    for (const path of this.#others) if ((await this.#folder.stat(path)) !== null) there.push(path);
    // If there are two, we would have to guess, and the session of another directory is worse than none.
    return there.length === 1 ? (there[0] ?? this.#usual) : this.#usual;
  }
}

async function unlessRefused<T>(result: Promise<T>): Promise<T | null> {
  try {
    return await result;
  } catch (error) {
    if (hasCode(error, 'refused')) return null;
    throw error;
  }
}
