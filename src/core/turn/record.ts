import type { Failure } from '../errors.ts';
import { asTitle } from '../input/names.ts';
import type { ContextUse } from '../restore/session.ts';
import { isObject, type Prompt } from './content.ts';
import { changedLines, type RecordedDiff, type ReportedDiff, recordedDiffs, reportedDiff } from './reported-diff.ts';
import { LongText, shorten } from './shorten.ts';
import type { TurnEnd } from './turn.ts';
import { chunkText, contextUse, printedText, RETRACTED, type ToolCallFields, type Update } from './update.ts';
import type { Usage } from './usage.ts';

/**
 * The result of a finished turn, written once. Restore, fork, export and search read records, never events.
 * Its schema is frozen: a change of meaning needs a new `version`.
 *
 * @example
 * for (const { n, parts } of await chat.records({ after: 10 })) console.log(n, parts.length);
 */
export interface TurnRecord {
  readonly version: 1;
  readonly n: number;
  readonly agent: string;
  /** The agent's id of the session that answered; null: the agent never reported it. */
  readonly sessionId: string | null;
  readonly outcome: TurnEnd;
  readonly prompt: Prompt;
  /** Text, thoughts and tools in the order in which they came. */
  readonly parts: readonly RecordPart[];
  readonly failure: Failure | null;
  readonly usage: Usage;
  readonly startedAt: number;
  readonly endedAt: number;
  /** Earlier turns, in a session that was adopted, could not be read. Left out: there are none. */
  readonly unknownBefore?: true;
  /** Its end was not seen, but read from the agent's own storage afterwards. Left out: its end was seen. */
  readonly recovered?: true;
}

/**
 * A piece of what an agent said or did in a turn, in its order.
 *
 * @example
 * for (const { parts } of await chat.records()) {
 *   for (const part of parts) if (part.type === 'tool') console.log(part.name, part.status);
 * }
 */
export type RecordPart =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'thought'; readonly text: string }
  | ToolPart;

export interface ToolPart {
  readonly type: 'tool';
  readonly id: string;
  readonly name: string;
  readonly kind: string;
  /** What it worked on: a path, a command; null: the agent did not say. */
  readonly target: string | null;
  readonly input: unknown;
  /** The beginning and the end of what it printed and changed; null: the agent did not report it. */
  readonly output: string | null;
  /** `unknown`: it began, and its end was not reported. */
  readonly status: 'completed' | 'failed' | 'unknown';
  /** How long it took, in milliseconds, between the reports of its beginning and its end. Left out: one of them is missing. */
  readonly ms?: number;
  /** The files that it reported to have changed, with a few lines around each change. `output` has the changed lines, too. Left out: none. */
  readonly diffs?: readonly RecordedDiff[];
}

/** The agent's answer as one text. */
export function replyText(parts: readonly RecordPart[]): string {
  const texts = parts.filter((part) => part.type === 'text').map((part) => part.text);
  return texts.join('\n\n');
}

/**
 * Merges the parts of the stream with those found in the agent's own storage afterwards. The longer answer wins; of two equally long
 * ones, the one with more parts, so that an empty storage does not remove thoughts. A tool that only one of them has is kept, and a
 * known end replaces an unknown one.
 */
export function mergeParts(seen: readonly RecordPart[], found: readonly RecordPart[]): RecordPart[] {
  const more = replyText(found).length - replyText(seen).length || found.length - seen.length;
  const [base, other] = more >= 0 ? [found, seen] : [seen, found];
  const others = new Map(other.filter((part) => part.type === 'tool').map((tool) => [tool.id, tool]));
  const merged = base.map((part) => {
    if (part.type !== 'tool') return part;
    const twin = others.get(part.id);
    others.delete(part.id);
    if (twin === undefined || part.status === 'unknown') return twin ?? part;
    return part.ms === undefined && twin.ms !== undefined ? { ...part, ms: twin.ms } : part;
  });
  return [...merged, ...others.values()];
}

/**
 * What an agent has replaced by a summary of its own in a turn: everything before the turn, or the beginning of the turn as well.
 * An agent that condenses before it answers keeps the prompt.
 */
export type Condensed = 'before' | 'turn';

/** In bytes. Of a longer output the beginning and the end are kept. */
const MAX_TOOL_OUTPUT = 16_384;

/** How a change of a file begins in the output of a tool. */
export const DIFF_BEGINS = '[diff ';

/** Text that is still arriving, in chunks, each with the id of its message if it has one. */
interface OpenText {
  readonly type: 'text' | 'thought';
  chunks: { readonly text: string; readonly messageId: unknown }[];
}

/** Gathers updates into the parts of a record. Chunks of one kind merge; a tool is one part however often it is updated. */
export class PartsBuilder {
  readonly #parts: (ToolPart | OpenText)[] = [];
  readonly #tools = new Map<string, number>();
  readonly #begun = new Map<string, number>();
  readonly #outputs = new Map<string, ToolOutput>();
  #title: string | null = null;
  #condensed: Condensed | null = null;
  #context: ContextUse | null = null;
  /** Of the last one that was completed. */
  #compactionId: unknown;

  /** `at`: when it came, in milliseconds of any clock; left out: not known. */
  add(update: Update, at?: number): void {
    switch (update.sessionUpdate) {
      case 'agent_message_chunk':
        this.#text('text', update);
        break;
      case 'agent_thought_chunk':
        this.#text('thought', update);
        break;
      case 'tool_call':
      case 'tool_call_update':
        this.#tool(update as ToolCallFields, at);
        break;
      case 'session_info_update':
        if (typeof update.title === 'string') this.#title = asTitle(update.title) || this.#title;
        break;
      case 'compaction_update':
        this.#compaction(update as { status?: unknown; compactionId?: unknown });
        break;
      case 'usage_update':
        this.#context = contextUse(update) ?? this.#context;
        break;
      case RETRACTED:
        this.#retracted(update as { messageId?: unknown; characters?: unknown });
        break;
    }
  }

  /** Whether any tool has begun: from then on, trying again could repeat a side effect. */
  get toolBegun(): boolean {
    return this.#tools.size > 0;
  }

  /** Null: nothing was condensed. */
  get condensed(): Condensed | null {
    return this.#condensed;
  }

  /** How full the context was when the agent last reported it; null: it has not. */
  get context(): ContextUse | null {
    return this.#context;
  }

  /** The title that the agent offered; null: none. */
  get title(): string | null {
    return this.#title;
  }

  parts(): RecordPart[] {
    const merged: RecordPart[] = [];
    for (const part of this.#parts) {
      if (part.type === 'tool') {
        merged.push(part);
        continue;
      }
      const text = part.chunks.map((chunk) => chunk.text).join('');
      const last = merged.at(-1);
      // What stood between two texts may have been retracted.
      if (last && last.type === part.type) merged[merged.length - 1] = { type: part.type, text: last.text + text };
      else if (text !== '') merged.push({ type: part.type, text });
    }
    return merged;
  }

  #text(type: 'text' | 'thought', update: Update): void {
    const text = chunkText(update);
    if (text === null || text === '') return;
    const last = this.#parts.at(-1);
    const chunk = { text, messageId: (update as { messageId?: unknown }).messageId };
    if (last?.type !== type) {
      this.#parts.push({ type, chunks: [chunk] });
      return;
    }
    // One chunk per message: a long answer comes in very many, and all are joined again for every reader.
    const before = last.chunks.at(-1);
    if (before !== undefined && before.messageId === chunk.messageId)
      last.chunks[last.chunks.length - 1] = { ...chunk, text: before.text + text };
    else last.chunks.push(chunk);
  }

  /** An agent may report the end of one compaction more than once. */
  #compaction({ status, compactionId }: { status?: unknown; compactionId?: unknown }): void {
    if (status !== 'completed' || (compactionId !== undefined && compactionId === this.#compactionId)) return;
    this.#compactionId = compactionId;
    this.#condensed = this.#parts.length === 0 ? 'before' : 'turn';
  }

  #retracted({ messageId, characters }: { messageId?: unknown; characters?: unknown }): void {
    if (typeof messageId !== 'string' && messageId !== null) return;
    if (typeof characters === 'number') this.#retractFirst(characters, messageId);
    else this.#retract(messageId);
  }

  #retract(messageId: string | null): void {
    const from = messageId === null ? this.#parts.findLastIndex(({ type }) => type === 'tool') + 1 : 0;
    for (const part of this.#parts.slice(from)) {
      if (part.type === 'tool') continue;
      part.chunks = part.chunks.filter((chunk) => (chunk.messageId ?? null) !== messageId);
    }
  }

  #retractFirst(characters: number, messageId: string | null): void {
    let left = characters;
    for (const part of this.#parts) {
      if (part.type !== 'text') continue;
      part.chunks = part.chunks.map((chunk) => {
        if (left === 0 || chunk.messageId !== messageId) return chunk;
        const text = chunk.text.slice(left);
        left -= chunk.text.length - text.length;
        return { ...chunk, text };
      });
    }
  }

  /** Agents do not always follow the protocol: a value of the wrong type is ignored. */
  #tool(fields: ToolCallFields, now: number | undefined): void {
    const id = textIn(fields.toolCallId) ?? '';
    const at = this.#tools.get(id);
    const before = at === undefined ? undefined : (this.#parts[at] as ToolPart);
    if (at === undefined && now !== undefined) this.#begun.set(id, now);
    const ended = toolStatus(fields);
    const begun = this.#begun.get(id);
    // The duration of a tool that begins and ends in one update is unknown.
    const took =
      ended !== null && at !== undefined && now !== undefined && begun !== undefined ? now - begun : undefined;
    const ms = before?.ms ?? (took === undefined ? undefined : Math.round(took));
    const diffs = fields.content ? diffsIn(fields) : (before?.diffs ?? []);
    const part: ToolPart = {
      type: 'tool',
      id,
      name: textIn(fields.title) ?? before?.name ?? 'tool',
      kind: textIn(fields.kind) ?? before?.kind ?? 'other',
      target: targetOf(fields) ?? before?.target ?? null,
      input: fields.rawInput ?? before?.input ?? null,
      output: this.#output(id, fields),
      status: ended ?? before?.status ?? 'unknown',
      ...(ms !== undefined && { ms }),
      ...(diffs.length > 0 && { diffs }),
    };
    if (at === undefined) this.#tools.set(id, this.#parts.push(part) - 1);
    else this.#parts[at] = part;
  }

  #output(id: string, fields: ToolCallFields): string | null {
    const before = this.#outputs.get(id);
    const content = contentText(fields);
    const more = printedText(fields);
    // Content replaces everything that was reported before it.
    const kept = content === null ? (before?.printed ?? null) : null;
    const printed = kept ?? (more === null ? null : new LongText(MAX_TOOL_OUTPUT));
    printed?.add(more ?? '');
    const said = printed?.shortened ?? '';
    // Beside what was printed, the raw output has only the exit code.
    const reported = content ?? (said === '' ? rawText(fields) : null);
    const text = reported === null ? (before?.text ?? null) : shorten(reported, MAX_TOOL_OUTPUT);
    this.#outputs.set(id, { text, printed });
    if (printed === null || (said === '' && text !== null)) return text;
    return text === null || text === '' ? said : shorten(`${text}\n${said}`, MAX_TOOL_OUTPUT);
  }
}

/** What was reported of the output of a tool so far. */
interface ToolOutput {
  /** The last content, or the raw output; null: none. */
  readonly text: string | null;
  /** What came in pieces after that; null: nothing. */
  readonly printed: LongText | null;
}

function textIn(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}

function itemsOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** Input fields in which agents name what a tool works on, when they give no location. */
const TARGETS = ['command', 'cmd', 'file_path', 'path', 'url', 'query', 'pattern'];
const LONGEST_TARGET = 200;

/** What the tool works on, on one line. */
function targetOf({ locations, rawInput }: ToolCallFields): string | null {
  const input = isObject(rawInput)
    ? TARGETS.map((name) => rawInput[name]).find((value) => typeof value === 'string')
    : null;
  const [place] = itemsOf(locations);
  const target = (isObject(place) ? textIn(place.path) : null) ?? (typeof input === 'string' ? input : null);
  const line = target?.replace(/\s+/g, ' ').trim() ?? '';
  if (line === '') return null;
  return line.length <= LONGEST_TARGET ? line : `${line.slice(0, LONGEST_TARGET)}…`;
}

function toolStatus(fields: ToolCallFields): 'completed' | 'failed' | null {
  return fields.status === 'completed' || fields.status === 'failed' ? fields.status : null;
}

function contentText({ content }: ToolCallFields): string | null {
  const texts = itemsOf(content).flatMap((item) => (isObject(item) ? (itemText(item) ?? []) : []));
  return texts.length === 0 ? null : texts.join('\n');
}

function rawText({ rawOutput: raw }: ToolCallFields): string | null {
  if (raw === undefined || raw === null) return null;
  return typeof raw === 'string' ? raw : JSON.stringify(raw);
}

/** Null: it has no text. The text of a terminal is an item of its own. */
function itemText(item: Record<string, unknown>): string | null {
  const diff = reportedDiff(item);
  if (diff !== null) return diffText(diff);
  const { content } = item;
  if (!isObject(content)) return null;
  if (content.type === 'image') return `[image ${textIn(content.mimeType) ?? ''}]`;
  return textIn(content.text);
}

function diffsIn({ content }: ToolCallFields): RecordedDiff[] {
  return recordedDiffs(itemsOf(content).flatMap((item) => reportedDiff(item) ?? []));
}

/** A change of a file: the removed and the added lines, without the equal lines before and after them. */
export function diffText({ path, oldText, newText, lines }: ReportedDiff): string {
  const { old, now, start, end } = changedLines(oldText ?? '', newText);
  const changed = (all: readonly string[], sign: string) =>
    all.slice(start, all.length - end).map((line) => `${sign}${line}`);
  const place = lines === null ? '' : `, line ${lines[1] + start}`;
  return [`${DIFF_BEGINS}${path}${place}]`, ...changed(old, '-'), ...changed(now, '+')].join('\n');
}
