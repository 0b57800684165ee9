import { ThroughlineError } from '../../../core/errors.ts';

/*
 * Reads JSON from bytes as they come, within bounds that are checked before memory is used, and without holding the event loop.
 *
 *   bytes ──▶ scan: depth, values, fields; where values begin and end ──▶ runs of whole values ──▶ JSON.parse, run by run
 *
 * A run is a part of one list or object, from one comma to another. What lies inside of it is not looked at again: JSON.parse
 * checks it. A list or object that is longer than a run is put together from its runs. A single text is parsed at once:
 * that takes one to five milliseconds for each MiB.
 */
export interface JsonBounds {
  /** How many levels of lists and objects there may be. */
  readonly depth: number;
  /** How many values there may be in all. */
  readonly values: number;
  /** How many of them may be lists or objects: these cost the most. */
  readonly lists: number;
  /** How many values one list may have: a long one is copied as it grows. */
  readonly items: number;
  /** How many bytes one text may have: it is parsed in one step. */
  readonly text: number;
  /** How many fields one object may have. */
  readonly fields: number;
}

/** The length of a run in bytes. */
const RUN = 65_536;
/** No number is longer, and no white space. */
const LONGEST_PLAIN = 1_048_576;

const QUOTE = 0x22;
const COMMA = 0x2c;
const BACKSLASH = 0x5c;
const OPEN_LIST = 0x5b;
const CLOSE_LIST = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;
const BYTE_ORDER_MARK = [0xef, 0xbb, 0xbf];
const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** A list or object that is open where the scan is. Places count from the first byte of all. */
interface Level {
  readonly isObject: boolean;
  /** The place of its bracket. */
  readonly at: number;
  /** Where the next run begins. */
  from: number;
  /** The last comma between its values; -1: there is none since `from`. */
  comma: number;
  fields: number;
  /** What was parsed of it; null: it is still a part of a run. */
  value: unknown[] | Record<string, unknown> | null;
  /** The last value was added already: up to the next comma there may be only white space. */
  closed: boolean;
}

/** Throws `invalid` or `too_large`. */
export class JsonReader {
  readonly #bounds: JsonBounds;
  readonly #run: number;
  /** The outermost level is a list of one value around everything. */
  readonly #levels: Level[];
  /** What has not been parsed yet, with a free byte before and after it for brackets; and the place of its first byte. */
  #kept: Uint8Array = new Uint8Array(0);
  #keptFrom = 0;
  #length = 0;
  #values = 1;
  #lists = 0;
  /** After the last bracket, comma or quote. */
  #plainFrom = 0;
  #inText = false;
  /** The place of the quote that begins the last text. */
  #textFrom = 0;
  #escaped = false;

  /** `run`: the length of a run in bytes, for tests. */
  constructor(bounds: JsonBounds, run = RUN) {
    this.#bounds = bounds;
    this.#run = run;
    this.#levels = [{ isObject: false, at: -1, from: 0, comma: -1, fields: 0, value: [], closed: false }];
  }

  /** Reads on, step by step. */
  *add(chunk: Uint8Array): Generator<undefined, void> {
    for (let from = 0; from < chunk.length; from += this.#run) {
      this.#add(chunk.subarray(from, from + this.#run));
      yield;
    }
  }

  #add(chunk: Uint8Array): void {
    const isBegin = this.#length < BYTE_ORDER_MARK.length;
    this.#keep(chunk);
    this.#scan(chunk);
    this.#length += chunk.length;
    if (isBegin) this.#skipByteOrderMark();
    if (this.#inText && this.#length - this.#textFrom > this.#bounds.text) {
      throw tooMany(`a text of more than ${this.#bounds.text} bytes`);
    }
    if (this.#inText || this.#length - this.#keptFrom < this.#run) return;
    if (this.#length - this.#plainFrom > LONGEST_PLAIN) throw notJson();
    if (this.#levels.some(({ value, comma }) => value === null || comma >= 0)) this.#parseRuns();
  }

  /** The value. */
  end(): unknown {
    const [all] = this.#levels;
    if (all === undefined || this.#levels.length > 1 || this.#inText) throw notJson();
    this.#finish(all, this.#length);
    const values = all.value as unknown[];
    if (values.length !== 1) throw notJson();
    return values[0];
  }

  /** Some programs begin a text with a byte order mark. Nothing was parsed yet: it contains no bracket. */
  #skipByteOrderMark(): void {
    const [all] = this.#levels;
    const isThere = BYTE_ORDER_MARK.every((byte, i) => this.#kept[this.#index(i)] === byte);
    if (all !== undefined && this.#length >= BYTE_ORDER_MARK.length && isThere) all.from = BYTE_ORDER_MARK.length;
  }

  /** Grows by doubling: a long text comes in many chunks. */
  #keep(chunk: Uint8Array): void {
    const used = this.#index(this.#length);
    const needed = used + chunk.length + 1;
    if (needed > this.#kept.length) {
      const larger = Buffer.allocUnsafe(this.#length === 0 ? needed : 2 * needed);
      larger.set(this.#kept.subarray(0, used));
      this.#kept = larger;
    }
    this.#kept.set(chunk, used);
  }

  #index(place: number): number {
    return place - this.#keptFrom + 1;
  }

  #scan(chunk: Uint8Array): void {
    for (let i = 0; i < chunk.length; i += 1) {
      const byte = chunk[i];
      if (this.#inText) {
        if (this.#escaped) this.#escaped = false;
        else if (byte === BACKSLASH) this.#escaped = true;
        else if (byte === QUOTE) this.#inText = false;
        continue;
      }
      if (byte === QUOTE) {
        this.#inText = true;
        this.#textFrom = this.#length + i;
      } else if (byte === COMMA) this.#between(this.#length + i);
      else if (byte === OPEN_LIST || byte === OPEN_OBJECT) this.#open(byte === OPEN_OBJECT, this.#length + i);
      else if (byte === CLOSE_LIST || byte === CLOSE_OBJECT) this.#close(byte === CLOSE_OBJECT, this.#length + i);
      else continue;
      this.#plainFrom = this.#length + i + 1;
    }
  }

  #innermost(): Level {
    return this.#levels.at(-1) as Level;
  }

  #count(level: Level): void {
    this.#values += 1;
    level.fields += 1;
    const { values, items, fields } = this.#bounds;
    if (this.#values > values) throw tooMany(`more than ${values} values`);
    if (!level.isObject && level.fields > items) throw tooMany(`a list with more than ${items} values`);
    if (level.isObject && level.fields > fields) throw tooMany(`an object with more than ${fields} fields`);
  }

  #between(at: number): void {
    const level = this.#innermost();
    this.#count(level);
    if (level.closed) this.#expectNothing(level, at);
    else level.comma = at;
  }

  #open(isObject: boolean, at: number): void {
    const { depth, lists } = this.#bounds;
    if (this.#levels.length > depth) throw invalid(`is more than ${depth} levels deep`);
    this.#lists += 1;
    if (this.#lists > lists) throw tooMany(`more than ${lists} lists and objects`);
    const level = { isObject, at, from: at + 1, comma: -1, fields: 0, value: null, closed: false };
    this.#levels.push(level);
    this.#count(level);
  }

  #close(isObject: boolean, at: number): void {
    const level = this.#levels.pop() as Level;
    if (this.#levels.length === 0 || level.isObject !== isObject) throw notJson();
    if (level.value === null) return;
    this.#finish(level, at);
    const outer = this.#innermost();
    outer.from = at + 1;
    outer.closed = true;
  }

  /** Parses all whole values so far. Levels that are open here are put together from runs from now on. */
  #parseRuns(): void {
    for (const [i, level] of this.#levels.entries()) {
      const outer = this.#levels[i - 1];
      if (level.value === null && outer !== undefined) {
        level.value = level.isObject ? {} : [];
        this.#attach(outer, level.at, level.value);
      }
      if (level.comma >= 0) this.#parseTo(level, level.comma);
    }
    const needed = this.#innermost().from;
    this.#kept.copyWithin(1, this.#index(needed), this.#index(this.#length));
    this.#keptFrom = needed;
  }

  /** Adds an open list or object to the level around it. Of that, only a field name can be left before it. */
  #attach(outer: Level, at: number, value: unknown): void {
    const before = this.#text(outer.from, at);
    if (outer.closed || !(outer.isObject || isSpace(before))) throw notJson();
    if (outer.isObject) put(outer.value as object, fieldName(before), value);
    else (outer.value as unknown[]).push(value);
  }

  #parseTo(level: Level, at: number): void {
    if (this.#addRun(level, at) === 0) throw notJson();
    level.from = at + 1;
    level.comma = -1;
  }

  /** The end of a level that was put together from runs. */
  #finish(level: Level, at: number): void {
    if (level.closed) {
      this.#expectNothing(level, at);
      return;
    }
    const isFirst = isEmpty(level.value as object);
    if (this.#addRun(level, at) === 0 && !isFirst) throw notJson();
  }

  #expectNothing(level: Level, at: number): void {
    if (!isSpace(this.#text(level.from, at))) throw notJson();
    level.from = at + 1;
    level.closed = false;
  }

  /** Adds the values up to a place. Returns how many there were. */
  #addRun({ isObject, from, value }: Level, to: number): number {
    const text = isObject
      ? this.#within(OPEN_OBJECT, from, to, CLOSE_OBJECT)
      : this.#within(OPEN_LIST, from, to, CLOSE_LIST);
    const run = parse(text) as unknown[] | Record<string, unknown>;
    checkNames(run);
    if (Array.isArray(run)) {
      for (const inner of run) (value as unknown[]).push(inner);
      return run.length;
    }
    const fields = Object.entries(run);
    for (const [name, inner] of fields) put(value as object, name, inner);
    return fields.length;
  }

  /** The text between brackets. They are put into the bytes for a moment: a copy of a long text would cost as much as parsing it. */
  #within(open: number, from: number, to: number, close: number): string {
    const [first, last] = [this.#index(from) - 1, this.#index(to)];
    const [before, after] = [this.#kept[first] ?? 0, this.#kept[last] ?? 0];
    this.#kept[first] = open;
    this.#kept[last] = close;
    const text = this.#text(from - 1, to + 1);
    this.#kept[first] = before;
    this.#kept[last] = after;
    return text;
  }

  #text(from: number, to: number): string {
    try {
      return UTF8.decode(this.#kept.subarray(this.#index(from), this.#index(to)));
    } catch {
      throw notJson();
    }
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw notJson();
  }
}

/** White space of JSON; `trim` would remove more. */
function isSpace(text: string): boolean {
  return /^[ \t\n\r]*$/.test(text);
}

/** From `"name" :`. */
function fieldName(text: string): string {
  const [name] = Object.keys(parse(`{${text}null}`) as object);
  if (name === undefined) throw notJson();
  return name;
}

function put(object: object, name: string, value: unknown): void {
  if (name === '__proto__') throw forbiddenName();
  (object as Record<string, unknown>)[name] = value;
}

function isEmpty(value: object): boolean {
  return (Array.isArray(value) ? value.length : Object.keys(value).length) === 0;
}

/** Refuses `__proto__` as a name. The depth is bounded, so recursion is safe. */
function checkNames(value: object): void {
  const isList = Array.isArray(value);
  if (!isList && Object.hasOwn(value, '__proto__')) throw forbiddenName();
  for (const inner of isList ? value : Object.values(value)) {
    if (typeof inner === 'object' && inner !== null) checkNames(inner);
  }
}

function forbiddenName(): ThroughlineError {
  return invalid('has a field with the name "__proto__", which is not allowed');
}

function notJson(): ThroughlineError {
  return invalid('is not valid JSON in UTF-8');
}

function invalid(message: string): ThroughlineError {
  return new ThroughlineError('invalid', `The body ${message}.`);
}

function tooMany(what: string): ThroughlineError {
  return new ThroughlineError('too_large', `The body has ${what}.`, { hint: 'Send less at once.' });
}
