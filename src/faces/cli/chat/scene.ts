import { PartsBuilder, type RecordPart, replyText } from '../../../core/turn/record.ts';
import type { Update } from '../../../core/turn/update.ts';
import { ControlStripper, oneLine } from '../terminal-text.ts';
import { clipped, type Line, type Span, span, wrap } from './text/cells.ts';
import { AT_START, type Place, renderMarkdown } from './text/markdown.ts';

/*
 * One turn on the screen: its prompt, what the agent says, its tools, and notes. Its parts are built exactly as those of the record, so
 * text that the agent takes back disappears here as well. Printed lines that no longer hold are erased and printed again. If they have
 * left the screen, a line says that they are taken back.
 */

export interface Flushed {
  /** How many of the lines printed last to erase first. */
  readonly erase: number;
  readonly lines: readonly Line[];
}

type ToolPart = Extract<RecordPart, { type: 'tool' }>;

export type EntryKind = 'prompt' | 'note' | 'seam' | 'text' | 'tool';

type Entry = { readonly key: string; readonly kind: EntryKind } & (
  | { readonly render: (width: number) => Line[] }
  | { readonly text: TextView }
  | { readonly tool: ToolPart }
);

interface Printed {
  readonly key: string;
  readonly kind: EntryKind;
  lines: number;
  /** Of a text: what was printed of it. */
  text?: string;
}

/** A prompt, note or seam between what the agent says. */
interface Aside {
  /** How many parts came before it. */
  readonly after: number;
  /** How much of the last part had arrived, if it was a text: the rest stands below. Null: it was no text. */
  readonly cut: number | null;
  readonly entry: Entry;
}

const TAKEN_BACK = 'The agent has taken back what it said above. It continues here:';

export class Scene {
  readonly #cwd: string | null;
  #parts = new PartsBuilder();
  /** By the place of the part. */
  readonly #cleaned = new Map<number, CleanText>();
  readonly #texts = new Map<string, TextView>();
  #asides: Aside[] = [];
  readonly #times = new Map<string, { readonly from: number; to: number | null }>();
  #printed: Printed[] = [];
  #before: EntryKind | null = null;
  isOver = false;
  /** It is over and every line of it was printed. */
  isPrinted = false;

  constructor(cwd: string | null) {
    this.#cwd = cwd;
  }

  /** The kind of what was printed last. */
  get lastKind(): EntryKind | null {
    return this.#kindBefore(this.#printed.length);
  }

  prompt(text: string): void {
    const render = (width: number) =>
      wrap([span(new ControlStripper().push(text), 'bold')], width, {
        first: [span('› ', 'cyan', 'bold')],
        rest: [span('  ')],
      });
    this.#aside('prompt', render);
  }

  /** `pauses`: the agent has stopped speaking for it, so no word is cut. */
  note(note: Line | ((width: number) => Line[]), pauses = false): void {
    this.#aside('note', typeof note === 'function' ? note : (width) => wrap(note, width), pauses);
  }

  seam(spans: Line): void {
    this.#aside('seam', (width) => wrap(spans, width));
  }

  update(update: Update, at: number): void {
    this.#parts.add(update);
    if (update.sessionUpdate !== 'tool_call' && update.sessionUpdate !== 'tool_call_update') return;
    const { toolCallId, status } = update as { toolCallId?: unknown; status?: unknown };
    if (typeof toolCallId !== 'string') return;
    const time = this.#times.get(toolCallId) ?? { from: at, to: null };
    if (status === 'completed' || status === 'failed') time.to = at;
    this.#times.set(toolCallId, time);
  }

  /** Another attempt: what was said is dropped. The new attempt begins below the asides. */
  restart(): void {
    this.#parts = new PartsBuilder();
    this.#asides = this.#asides.map(({ entry }) => ({ after: 0, cut: null, entry }));
  }

  /** Adds the end of an answer that was read from the agent's storage after its stream was lost. */
  complete(reply: string): void {
    const seen = replyText(this.#parts.parts());
    if (reply.length <= seen.length || !reply.startsWith(seen)) return;
    const text = reply.slice(seen.length);
    this.#parts.add({ sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } });
  }

  /** The turn has ended. */
  end(): void {
    this.isOver = true;
  }

  /** `before`: what was printed before this scene; null: nothing. */
  flush(width: number, erasable: number, before: EntryKind | null): Flushed {
    this.#before = before;
    const entries = this.#entries();
    const last = this.#printed.length - 1;
    const outdated = this.#printed.findIndex((printed, at) => !isCurrent(printed, entries[at], at === last));
    const lines: Line[] = [];
    let erase = 0;
    if (outdated !== -1) {
      const gone = this.#printed.splice(outdated);
      const lost = gone.reduce((sum, { lines: count }) => sum + count, 0);
      for (const { key } of gone) this.#texts.get(key)?.forget();
      if (lost <= erasable) erase = lost;
      else lines.push([], ...wrap([span(TAKEN_BACK, 'dim')], width));
    }
    this.isPrinted = this.#print(entries, width, lines) && this.isOver;
    return { erase, lines };
  }

  live(width: number, now: number): Line[] {
    const entries = this.#entries();
    const last = this.#printed.at(-1);
    const isBegun = last !== undefined && entries[this.#printed.length - 1]?.key === last.key && !this.isPrinted;
    const from = isBegun && last?.kind === 'text' ? this.#printed.length - 1 : this.#printed.length;
    const shown: Line[] = [];
    let before = this.#kindBefore(this.#printed.length);
    for (const entry of entries.slice(from)) {
      const lines = this.#liveLines(entry, width, now);
      if (lines.length === 0) continue;
      if (entry.key !== last?.key && isApart(before, entry.kind)) shown.push([]);
      shown.push(...lines);
      before = entry.kind;
    }
    return shown;
  }

  /** Prints what is finished, in order. True: everything was. */
  #print(entries: readonly Entry[], width: number, lines: Line[]): boolean {
    for (let at = Math.max(0, this.#printed.length - 1); at < entries.length; at += 1) {
      const entry = entries[at] as Entry;
      const known = this.#printed[at];
      if (known !== undefined && !('text' in entry)) continue;
      const isLast = at === entries.length - 1 && !this.isOver;
      const { shown, isWhole } = this.#finished(entry, width, isLast);
      const gap: Line[] =
        known === undefined && shown.length > 0 && isApart(this.#kindBefore(at), entry.kind) ? [[]] : [];
      lines.push(...gap, ...shown);
      const printed = known ?? { key: entry.key, kind: entry.kind, lines: 0 };
      printed.lines += gap.length + shown.length;
      if ('text' in entry) printed.text = entry.text.printed;
      if (known === undefined && (isWhole || shown.length > 0)) this.#printed.push(printed);
      if (!isWhole) return false;
    }
    return true;
  }

  #kindBefore(at: number): EntryKind | null {
    return this.#printed.slice(0, at).findLast(({ lines }) => lines > 0)?.kind ?? this.#before;
  }

  #finished(entry: Entry, width: number, isLast: boolean): { shown: readonly Line[]; isWhole: boolean } {
    if ('render' in entry) return { shown: entry.render(width), isWhole: true };
    if ('text' in entry) return { shown: entry.text.take(width, !isLast), isWhole: !isLast };
    const isWhole = this.isOver || entry.tool.status !== 'unknown';
    return { shown: isWhole ? [this.#toolLine(entry.tool, width, null)] : [], isWhole };
  }

  #liveLines(entry: Entry, width: number, now: number): readonly Line[] {
    if ('render' in entry) return entry.render(width);
    if ('text' in entry) return entry.text.rest(width);
    return [this.#toolLine(entry.tool, width, now)];
  }

  #shownParts(): RecordPart[] {
    return this.#parts.parts().filter(({ type }) => type !== 'thought');
  }

  #entries(): Entry[] {
    const parts = this.#shownParts();
    const entries = this.#besides(0, parts.length === 0 ? Number.POSITIVE_INFINITY : 0).map(({ entry }) => entry);
    for (const [index, part] of parts.entries()) {
      const isLast = index === parts.length - 1;
      const asides = this.#besides(index + 1, isLast ? Number.POSITIVE_INFINITY : index + 1);
      if (part.type === 'text') entries.push(...this.#textEntries(index, part.text, asides));
      else if (part.type === 'tool')
        entries.push({ key: `tool ${part.id}`, kind: 'tool', tool: part }, ...asides.map(({ entry }) => entry));
    }
    return entries;
  }

  #besides(first: number, last: number): Aside[] {
    return this.#asides.filter(({ after }) => after >= first && after <= last);
  }

  /** The pieces of a text, with the asides between them. */
  #textEntries(index: number, raw: string, asides: readonly Aside[]): Entry[] {
    const cleaned = this.#cleaned.get(index) ?? new CleanText();
    this.#cleaned.set(index, cleaned);
    const whole = cleaned.set(raw);
    const entries: Entry[] = [];
    let [from, fence]: [number, Place['fence']] = [0, null];
    const piece = (to: number, isCut: boolean) => {
      if (to <= from) return;
      const key = `text ${index} from ${from}`;
      const text = this.#texts.get(key) ?? new TextView({ ...AT_START, fence });
      this.#texts.set(key, text);
      text.clean = whole.slice(from, to);
      entries.push({ key, kind: 'text', text });
      if (isCut) fence = text.fenceAtEnd;
      from = to;
    };
    for (const { cut, entry } of asides) {
      piece(Math.min(cut ?? whole.length, whole.length), true);
      entries.push(entry);
    }
    piece(whole.length, false);
    return entries;
  }

  #aside(kind: 'prompt' | 'note' | 'seam', render: (width: number) => Line[], pauses = false): void {
    const entries = this.#entries();
    const parts = this.#shownParts();
    const last = entries.findLast((entry) => 'text' in entry);
    const isText = !this.isOver && parts.at(-1)?.type === 'text' && last !== undefined && 'text' in last;
    const whole = this.#cleaned.get(parts.length - 1)?.clean ?? '';
    const cut = isText ? whole.length - (pauses ? 0 : last.text.unfinished) : null;
    const key = `aside ${this.#asides.length}`;
    this.#asides.push({ after: parts.length, cut, entry: { key, kind, render } });
  }

  #toolLine({ id, name, target, status }: ToolPart, width: number, now: number | null): Line {
    const { from, to } = this.#times.get(id) ?? { from: 0, to: 0 };
    const ms = (to ?? now ?? from) - from;
    const icon = { completed: span('✓ ', 'green'), failed: span('✗ ', 'red'), unknown: span('● ', 'yellow') }[status];
    const words = oneLine(name, 'code');
    const place = oneLine(target === null ? '' : this.#short(target), 'code');
    const about: Span[] = place === '' || words.includes(place) ? [] : [span(` ${place}`, 'dim')];
    const outcome = status === 'failed' ? ' · failed' : status === 'unknown' && now === null ? ' · end unknown' : '';
    const time = span(`${ms >= 100 ? ` · ${seconds(ms)}` : ''}${outcome}`, status === 'failed' ? 'red' : 'dim');
    const room = Math.max(8, width - 2 - time.text.length);
    return [icon, ...clipped([span(words), ...about], room), time];
  }

  #short(path: string): string {
    return this.#cwd !== null && path.startsWith(`${this.#cwd}/`) ? path.slice(this.#cwd.length + 1) : path;
  }
}

/** A blank line stands between things of different kinds, and around every text. */
function isApart(before: EntryKind | null, kind: EntryKind): boolean {
  return kind === 'prompt' || (before !== null && (before !== kind || kind === 'text'));
}

/** Whether what was printed still holds. Only the last text may have grown. */
function isCurrent(printed: Printed, entry: Entry | undefined, isLast: boolean): boolean {
  if (entry === undefined || entry.key !== printed.key) return false;
  if (!('text' in entry) || printed.text === undefined) return true;
  return isLast ? entry.text.clean.startsWith(printed.text) : entry.text.clean === printed.text;
}

function seconds(ms: number): string {
  return ms < 9_950
    ? `${(ms / 1000).toFixed(1)} s`
    : ms < 120_000
      ? `${Math.round(ms / 1000)} s`
      : `${Math.round(ms / 60_000)} min`;
}

/** How much of an open block is drawn: no screen shows more. */
const MOST_OPEN = 8_000;
const LONGEST_WORD = 200;
/** For rendering where only the structure matters. */
const ANY_WIDTH = 80;

/** A text as it arrives, without control characters. */
class CleanText {
  #raw = '';
  #stripper = new ControlStripper();
  clean = '';

  set(raw: string): string {
    if (!raw.startsWith(this.#raw)) {
      this.#raw = '';
      this.clean = '';
      this.#stripper = new ControlStripper();
    }
    this.clean += this.#stripper.push(raw.slice(this.#raw.length));
    this.#raw = raw;
    return this.clean;
  }
}

/** A text, or a piece of one, printed as far as it is finished. */
class TextView {
  readonly #start: Place;
  clean = '';
  #printedTo = 0;
  #place: Place;

  constructor(start: Place) {
    this.#start = start;
    this.#place = start;
  }

  get printed(): string {
    return this.clean.slice(0, this.#printedTo);
  }

  /** How long the word at its end is, or the line if it is code: more of it may come. */
  get unfinished(): number {
    const end = (this.#place.fence === null ? /\S*[\p{L}\p{N}]$/u : /[^\n]*$/).exec(this.clean.slice(-LONGEST_WORD));
    return end === null || end[0].length === LONGEST_WORD ? 0 : end[0].length;
  }

  /** The code block that is open at its end; null: none. */
  get fenceAtEnd(): Place['fence'] {
    const { finished } = renderMarkdown(this.clean.slice(this.#printedTo), this.#place, ANY_WIDTH, true);
    return (finished.at(-1)?.place ?? this.#place).fence;
  }

  forget(): void {
    this.#printedTo = 0;
    this.#place = this.#start;
  }

  /** The lines that are finished since the last time. */
  take(width: number, isOver: boolean): Line[] {
    const { finished } = renderMarkdown(this.clean.slice(this.#printedTo), this.#place, width, isOver);
    const last = finished.at(-1);
    if (last !== undefined) {
      this.#printedTo += last.end;
      this.#place = last.place;
    }
    return finished.flatMap(({ lines }) => lines);
  }

  /** The rest, as it looks now. */
  rest(width: number): readonly Line[] {
    const from = Math.max(this.#printedTo, this.clean.length - MOST_OPEN);
    const { finished, open } = renderMarkdown(this.clean.slice(from), this.#place, width, false);
    return [...finished.flatMap(({ lines }) => lines), ...open()];
  }
}
