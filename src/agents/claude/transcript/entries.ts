import { isObject } from '../../../core/content.ts';

/*
 * A transcript is an append-only file of JSON lines. Lines are split as bytes, so that a copy has them exactly as they are. A
 * line without its newline does not count yet: Claude may still be writing it.
 */

/** One line, with the fields that we read. Unknown fields are kept. */
export interface Entry {
  readonly type: string;
  /** Missing on lines outside of the conversation: titles, costs, queues. */
  readonly uuid?: string;
  /** The entry before this one; null: none, it is a root. */
  readonly parentUuid?: string | null;
  /** On a compaction boundary: the entry that was the last one before it. */
  readonly logicalParentUuid?: string | null;
  readonly subtype?: string;
  readonly timestamp?: string;
  readonly sessionId?: string;
  /** Written by a subagent, and not part of the conversation. */
  readonly isSidechain?: boolean;
  /** Written by Claude itself in the user's name. */
  readonly isMeta?: boolean;
  readonly isApiErrorMessage?: boolean;
  readonly message?: EntryMessage;
  readonly [field: string]: unknown;
}

export interface EntryMessage {
  readonly role?: string;
  readonly id?: string;
  readonly model?: string;
  readonly content?: string | readonly EntryBlock[];
  readonly [field: string]: unknown;
}

export interface EntryBlock {
  readonly type: string;
  readonly [field: string]: unknown;
}

/** A whole line of the file. */
export interface Line {
  /** 1, 2, 3… */
  readonly number: number;
  /** Null: not an entry. Blank lines are not reported at all. */
  readonly entry: Entry | null;
}

const NEWLINE = 10;
/** Longer lines are dropped while they come and count as corrupt. The largest image that a model takes is 7 MB. */
export const MAX_LINE_BYTES = 64 * 1024 * 1024;

/** Splits bytes into lines and parses them. Never throws; holds at most one line. */
export class EntryReader {
  readonly #limit: number;
  #number = 0;
  #partial: Uint8Array[] = [];
  #length = 0;

  constructor(limit = MAX_LINE_BYTES) {
    this.#limit = limit;
  }

  /** Bytes after the last whole line. */
  get pending(): number {
    return this.#length;
  }

  /** How many lines there were, including blank ones. */
  get lines(): number {
    return this.#number;
  }

  *push(bytes: Uint8Array): Generator<Line> {
    let from = 0;
    for (let at = bytes.indexOf(NEWLINE); at !== -1; at = bytes.indexOf(NEWLINE, from)) {
      this.#keep(bytes.subarray(from, at));
      const line = this.#finish();
      if (line !== null) yield line;
      from = at + 1;
    }
    // A copy, because the reader may reuse its buffer.
    if (from < bytes.length) this.#keep(Uint8Array.from(bytes.subarray(from)));
  }

  #keep(bytes: Uint8Array): void {
    this.#length += bytes.length;
    if (this.#length > this.#limit) this.#partial = [];
    else if (bytes.length > 0) this.#partial.push(bytes);
  }

  #finish(): Line | null {
    const tooLong = this.#length > this.#limit;
    const text = tooLong ? null : textOf(this.#partial);
    this.#number += 1;
    this.#partial = [];
    this.#length = 0;
    if (text !== null && text.trim() === '') return null;
    return { number: this.#number, entry: text === null ? null : parseEntry(text) };
  }
}

function textOf(parts: readonly Uint8Array[]): string {
  const [only] = parts;
  if (only !== undefined && parts.length === 1) {
    return Buffer.from(only.buffer, only.byteOffset, only.length).toString('utf8');
  }
  return Buffer.concat(parts).toString('utf8');
}

/** Null: not a JSON object with a type. */
export function parseEntry(text: string): Entry | null {
  try {
    const entry: unknown = JSON.parse(text);
    return isObject(entry) && typeof entry.type === 'string' ? (entry as unknown as Entry) : null;
  } catch {
    return null;
  }
}

/** An entry that can be a parent. */
export type Link = Entry & { readonly uuid: string };

/** Whether an entry is part of the conversation's chain. */
export function isLink(entry: Entry): entry is Link {
  return typeof entry.uuid === 'string' && entry.uuid !== '' && entry.isSidechain !== true;
}

/** Whether an entry is a message of the conversation. */
export function isMessage(entry: Entry): boolean {
  return (entry.type === 'user' || entry.type === 'assistant') && entry.isSidechain !== true;
}

/** The blocks of a message; a plain text is one block. */
export function blocksOf(message: EntryMessage | undefined): readonly EntryBlock[] {
  const content: unknown = message?.content;
  if (typeof content === 'string') return [{ type: 'text', text: content }];
  if (!Array.isArray(content)) return [];
  return content.filter((block): block is EntryBlock => isObject(block) && typeof block.type === 'string');
}
