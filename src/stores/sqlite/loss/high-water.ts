import { closeSync, constants, fstatSync, openSync, readSync, realpathSync, rmSync, writeSync } from 'node:fs';
import { crc32 } from 'node:zlib';

/*
 * The high-water mark: what was committed last, in a small file beside the database. SQLite drops the end of its log (WAL)
 * silently when that is cut or damaged, and an older copy of the database looks like any other. The mark is in neither of them.
 *
 * It is written right after each commit, and never synced: it survives the death of every process, and
 * a power failure may take it back. So it is never ahead of what was committed, and it shows loss after a kill or by damage, not
 * after a power failure.
 *
 *   slot 0         whose it is: the id of the log
 *   slots 1–15     commits without an event, by their number modulo 15
 *   slots 16–4111  events, by their number in the table modulo 4096; so the last ones can be named
 *
 * A slot is 64 bytes with a checksum over itself and the id of the log: a slot that was half written, or belongs to another log, does
 * not count. Several processes write the file at once. The database's lock gives each its own numbers, and so its own slots.
 */

const SLOT = 64;
const CHANGES = 15;
const EVENTS = 4096;
const FIRST_EVENT = 1 + CHANGES;
const BYTES = (FIRST_EVENT + EVENTS) * SLOT;
const ID_BYTES = 40;
const MAGIC = 'throughline high water 1';

/** An event as the mark has it. `no`: its number in the table; `turns`: how many turns the conversation had. */
export interface MarkedEvent {
  readonly no: number;
  readonly conversation: string;
  readonly seq: number;
  readonly turns: number;
}

/** What the file says. */
export interface Mark {
  /** The id of the log. */
  readonly log: string;
  /** The number of the last commit without an event. */
  readonly changes: number;
  /** The event of this number in the table; null: the mark does not have it, or no longer. */
  at(no: number): MarkedEvent | null;
  /** The last of the events after this number, rising. */
  after(no: number): MarkedEvent[];
}

/** Beside the real file, however it is reached. */
function highWaterPath(file: string): string {
  return `${realpathSync(file)}.highwater`;
}

/** Removes the mark of a database that was put back on purpose. It then counts as one that never had a mark. */
export function forgetHighWater(file: string): void {
  rmSync(highWaterPath(file), { force: true });
}

/** Only reads, and never makes the file. Null: there is none, it cannot be read, or it is damaged. */
export function readHighWater(file: string): Mark | null {
  try {
    const descriptor = openSync(highWaterPath(file), constants.O_RDONLY);
    try {
      return markIn(descriptor);
    } finally {
      closeSync(descriptor);
    }
  } catch {
    return null;
  }
}

export class HighWater {
  readonly #descriptor: number;
  readonly #slots = Buffer.alloc(EVENTS * SLOT);
  /** The checksum of the id of the log. */
  #log = crc32('');

  private constructor(descriptor: number) {
    this.#descriptor = descriptor;
  }

  /** Null: its file cannot be written, so there is no mark. */
  static open(file: string): HighWater | null {
    try {
      return new HighWater(openSync(highWaterPath(file), constants.O_RDWR | constants.O_CREAT, 0o600));
    } catch {
      return null;
    }
  }

  /** Null: there is none, or it is damaged. */
  read(): Mark | null {
    return markIn(this.#descriptor);
  }

  /** Starts again for this log. Call it under the database's lock. `last`: its last event; null: it has none. */
  reset(log: string, changes: number, last: MarkedEvent | null): void {
    const bytes = Buffer.alloc(BYTES);
    encode(bytes.subarray(0, SLOT), { no: 0, conversation: log, seq: 0, turns: 0 }, crc32(MAGIC));
    this.#write(bytes, 0);
    this.follow(log);
    this.changed(changes);
    if (last !== null) this.committed([last]);
  }

  /** Goes on with the mark of this log. */
  follow(log: string): void {
    this.#log = crc32(log);
  }

  /** The events of one commit, by number, without gaps. */
  committed(events: readonly MarkedEvent[]): void {
    const last = events.slice(-EVENTS);
    const first = eventSlot(last[0]?.no ?? 0);
    for (const [i, event] of last.entries()) encode(this.#slots.subarray(i * SLOT, (i + 1) * SLOT), event, this.#log);
    const untilEnd = Math.min(last.length, FIRST_EVENT + EVENTS - first) * SLOT;
    this.#write(this.#slots.subarray(0, untilEnd), first);
    this.#write(this.#slots.subarray(untilEnd, last.length * SLOT), FIRST_EVENT);
  }

  /** A commit without an event. */
  changed(number: number): void {
    const slot = this.#slots.subarray(0, SLOT);
    encode(slot, { no: number, conversation: '', seq: 0, turns: 0 }, this.#log);
    this.#write(slot, 1 + (number % CHANGES));
  }

  close(): void {
    closeSync(this.#descriptor);
  }

  #write(bytes: Uint8Array, slot: number): void {
    try {
      if (bytes.length > 0) writeSync(this.#descriptor, bytes, 0, bytes.length, slot * SLOT);
    } catch {
      // The commit is durable whether or not the mark shows it; a mark that is behind only notices less.
    }
  }
}

/** Null: there is no whole mark. */
function markIn(descriptor: number): Mark | null {
  const bytes = Buffer.alloc(BYTES);
  if (fstatSync(descriptor).size < BYTES || readSync(descriptor, bytes, 0, BYTES, 0) < BYTES) return null;
  const at = (index: number) => bytes.subarray(index * SLOT, (index + 1) * SLOT);
  const owner = decode(at(0), crc32(MAGIC));
  if (owner === null) return null;
  const log = owner.conversation;
  const ofLog = crc32(log);
  const decoded = (indexes: number[]) => indexes.map((i) => decode(at(i), ofLog)).filter((slot) => slot !== null);
  return {
    log,
    changes: Math.max(0, ...decoded(range(1, CHANGES)).map(({ no }) => no)),
    at: (no) => decoded([eventSlot(no)]).find((event) => event.no === no) ?? null,
    after: (no) => decoded(slotsAfter(bytes, no)).sort((a, b) => a.no - b.no),
  };
}

/** The slots of events after this number. Every command waits for this when it opens the store, so it makes no call per slot. */
function slotsAfter(bytes: Buffer, no: number): number[] {
  const found: number[] = [];
  const words = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  for (let slot = FIRST_EVENT; slot < FIRST_EVENT + EVENTS; slot += 1) {
    const at = slot * SLOT;
    if (words.getUint32(at, true) + words.getUint16(at + 4, true) * 2 ** 32 > no) found.push(slot);
  }
  return found;
}

const range = (first: number, count: number) => Array.from({ length: count }, (_, i) => first + i);

function eventSlot(no: number): number {
  return FIRST_EVENT + (no % EVENTS);
}

function encode(slot: Buffer, { no, conversation, seq, turns }: MarkedEvent, log: number): void {
  slot.fill(0);
  slot.writeUIntLE(no, 0, 6);
  slot.writeUIntLE(seq, 6, 6);
  slot.writeUInt32LE(turns, 12);
  slot.write(conversation, 16, ID_BYTES, 'utf8');
  slot.writeUInt32LE(checksum(slot, log), SLOT - 4);
}

function decode(slot: Buffer, log: number): MarkedEvent | null {
  if (slot.readUInt32LE(SLOT - 4) !== checksum(slot, log)) return null;
  const conversation = slot.toString('utf8', 16, 16 + ID_BYTES).replace(/\0+$/, '');
  return { no: slot.readUIntLE(0, 6), conversation, seq: slot.readUIntLE(6, 6), turns: slot.readUInt32LE(12) };
}

function checksum(slot: Buffer, log: number): number {
  return crc32(slot.subarray(0, SLOT - 4), log);
}
