import { isObject } from '../../../core/turn/content.ts';
import { parseObject } from '../../shared/json.ts';
import { LineReader, MAX_LINE_BYTES } from '../../shared/lines.ts';

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

/** Splits bytes into lines and parses them. A line over the limit counts as corrupt. Never throws; holds at most one line. */
export class EntryReader {
  readonly #reader: LineReader;
  #found: Line[] = [];
  #number = 0;

  constructor(limit = MAX_LINE_BYTES) {
    this.#reader = new LineReader(
      (text) => this.#add(text.trim() === '' ? 'blank' : parseEntry(text)),
      () => this.#add(null),
      limit,
    );
  }

  /** Bytes after the last whole line. */
  get pending(): number {
    return this.#reader.pending;
  }

  /** How many lines there were, including blank ones. */
  get lines(): number {
    return this.#number;
  }

  push(bytes: Uint8Array): Line[] {
    this.#found = [];
    this.#reader.push(bytes);
    return this.#found;
  }

  #add(entry: Entry | 'blank' | null): void {
    this.#number += 1;
    if (entry !== 'blank') this.#found.push({ number: this.#number, entry });
  }
}

/** Null: not a JSON object with a type. */
export function parseEntry(text: string): Entry | null {
  const entry = parseObject(text);
  return typeof entry?.type === 'string' ? (entry as unknown as Entry) : null;
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
