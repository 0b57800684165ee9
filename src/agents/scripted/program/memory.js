import { appendFileSync, copyFileSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** @import { Entry } from '../protocol.ts' */
/** @import { Update } from '../../../core/turn/update.ts' */

/** The prompts and answers of a session, in order. They are also on disk, unless the session ends with the process. */
export class Memory {
  /** @type {Entry[]} The context: what the session knows. */
  entries = [];
  /** How many entries its storage has. A hollow resume knows fewer. */
  stored = 0;
  /** Bytes of the context. */
  size = 0;
  #dir;
  #disk;
  #file = '';
  /** The storage ends with an incomplete line. */
  #torn = false;

  /**
   * @param {string} dir
   * @param {boolean} disk
   */
  constructor(dir, disk) {
    this.#dir = dir;
    this.#disk = disk;
  }

  /** @param {string} id */
  exists(id) {
    return this.#disk && existsSync(this.#path(id));
  }

  /** @param {string} id */
  erase(id) {
    rmSync(this.#path(id), { force: true });
  }

  /** An empty session. Its file appears with its first entry. @param {string} id */
  begin(id) {
    this.#file = this.#path(id);
    this.entries = [];
    this.stored = 0;
    this.size = 0;
  }

  /** Reads the context from the storage: the chain that ends in its last entry. @param {string} id */
  load(id) {
    const all = this.#read(id);
    const known = new Map(all.map((entry) => [entry.uuid, entry]));
    for (let entry = all.at(-1); entry; entry = entry.parent === null ? undefined : known.get(entry.parent)) {
      this.entries.push(entry);
      this.size += sizeOf(entry);
    }
    this.entries.reverse();
  }

  /** A hollow resume: continues the storage without the context that is in it. @param {string} id */
  loadHollow(id) {
    this.#read(id);
  }

  /** The same content under another id. @param {string} id */
  moveTo(id) {
    const before = this.#file;
    this.#file = this.#path(id);
    if (this.#disk) copyFileSync(before, this.#file);
  }

  /**
   * Stores an entry before anybody sees it.
   * @param {{ uuid: string, role: 'user', text: string } | { role: 'agent', update: Update }} what
   * @returns {Entry}
   */
  add(what) {
    const parent = this.entries.at(-1)?.uuid ?? null;
    const entry = { uuid: randomId(), parent, n: this.stored + 1, ...what, at: Date.now() };
    if (this.#disk) {
      if (this.stored === 0) mkdirSync(dirname(this.#file), { recursive: true, mode: 0o700 });
      appendFileSync(this.#file, `${this.#torn ? '\n' : ''}${JSON.stringify(entry)}\n`, { mode: 0o600 });
      this.#torn = false;
    }
    this.stored += 1;
    this.entries.push(entry);
    this.size += sizeOf(entry);
    return entry;
  }

  /**
   * @param {string} id
   * @param {number} until
   */
  lock(id, until) {
    if (this.#disk) writeFileSync(`${this.#path(id)}.lock`, String(until), { mode: 0o600 });
  }

  /** @param {string} id */
  lockedUntil(id) {
    try {
      return Number(readFileSync(`${this.#path(id)}.lock`, 'utf8'));
    } catch {
      return 0;
    }
  }

  /** How often this was counted before, by any session of the directory. @param {string} what */
  count(what) {
    const file = join(this.#dir, 'counts');
    mkdirSync(this.#dir, { recursive: true, mode: 0o700 });
    const before = existsSync(file) ? readFileSync(file, 'utf8').split('\n') : [];
    appendFileSync(file, `${what}\n`, { mode: 0o600 });
    return before.filter((line) => line === what).length;
  }

  /** @param {string} id */
  #path(id) {
    return join(this.#dir, `${id}.jsonl`);
  }

  /**
   * @param {string} id
   * @returns {Entry[]}
   */
  #read(id) {
    this.begin(id);
    if (!this.exists(id)) return [];
    const text = readFileSync(this.#file, 'utf8');
    this.#torn = text !== '' && !text.endsWith('\n');
    const entries = text.split('\n').flatMap(parsed);
    this.stored = entries.at(-1)?.n ?? 0;
    return entries;
  }
}

/** A damaged line is skipped, as real agents do. @param {string} line */
function parsed(line) {
  try {
    return line === '' ? [] : [/** @type {Entry} */ (JSON.parse(line))];
  } catch {
    return [];
  }
}

/** @param {Entry} entry */
function sizeOf(entry) {
  return entry.role === 'user' ? entry.text.length : JSON.stringify(entry.update).length;
}

/** Unique enough for an agent of tests; node:crypto would add three milliseconds to every start. */
export function randomId() {
  const part = () =>
    Math.floor(Math.random() * 2 ** 48)
      .toString(16)
      .padStart(12, '0');
  const hex = (part() + part() + part()).slice(0, 32);
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}
