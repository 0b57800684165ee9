import { type Chain, positionOf } from './chain.ts';
import { type Defect, type DefectKind, defectsOf, timeOf } from './defects.ts';
import { blocksOf, type Entry, isLink, isMessage, type Line, type Link } from './entries.ts';
import { OpenCalls } from './open-calls.ts';

interface Node extends Pick<Chain, 'root'> {
  readonly depth: number;
  readonly parent: string | null;
  /** Of the last message up to here. */
  readonly time: number;
  /** The answer of the model that it is a part of, or the result of a tool for; null: none. */
  readonly group: { readonly id: string; readonly depth: number } | null;
}

const MOST_DEFECTS = 1_000;

/** Follows a transcript line by line. An entry's depth is its parent's plus one, so nothing has to be walked twice. */
export class ChainIndex {
  readonly #keep: number;
  readonly #nodes = new Map<string, Node>();
  readonly #defects: Defect[] = [];
  readonly #calls = new OpenCalls();
  /** The last link of the file. */
  #tip: string | null = null;
  /** The leaf that Claude noted last, and whether the tip descends from it. */
  #noted: string | null = null;
  #descends = true;
  #trimmed = false;
  #lost = false;

  /** `keep`: how many of the newest entries are remembered. Older ones are hardly ever a parent again. */
  constructor(keep = Number.POSITIVE_INFINITY) {
    this.#keep = keep;
  }

  /** An entry led back to before what is remembered: only reading it all again tells where the session stands. */
  get lost(): boolean {
    return this.#lost;
  }

  add(line: Line): void {
    for (const defect of defectsOf(line)) this.#note(defect);
    const { entry, number } = line;
    if (entry?.type === 'last-prompt') this.#believe(entry);
    if (entry === null || !isLink(entry)) return;
    const found = (kind: DefectKind) => this.#note({ kind, line: number, uuid: entry.uuid });
    this.#nodes.set(entry.uuid, this.#nodeOf(entry, found));
    this.#calls.add(entry, number);
    const goesOn = entry.parentUuid === this.#tip;
    this.#tip = entry.uuid;
    if (!goesOn) this.#descends = this.#isBelowNote();
    this.#trim();
  }

  /** Where the session stood when this entry was its last; null: it is not remembered. */
  positionAt(uuid: string): string | null {
    const node = this.#nodes.get(uuid);
    return node === undefined ? null : positionOf({ count: node.depth, leaf: uuid });
  }

  chain(): Chain {
    const leaf = this.#descends ? this.#tip : this.#noted;
    const node = this.#nodeAt(leaf);
    const root = node?.root ?? null;
    const empty: Defect[] = this.#tip === null ? [{ kind: 'empty', line: 0, uuid: null }] : [];
    return {
      leaf,
      count: node?.depth ?? 0,
      root,
      rootReached: root !== null,
      defects: [...this.#defects, ...this.#calls.defects(), ...empty],
    };
  }

  #nodeOf(entry: Link, found: (kind: DefectKind) => void): Node {
    if (this.#nodes.has(entry.uuid)) found('duplicate_uuid');
    const own = isMessage(entry) ? timeOf(entry) : Number.NaN;
    const parent = entry.parentUuid;
    if (typeof parent !== 'string') {
      const compacted = entry.subtype === 'compact_boundary';
      if (!compacted && (this.#tip !== null || parent === undefined)) found('second_root');
      const root = compacted ? 'compaction' : 'start';
      return { depth: 1, parent: null, root, time: own, group: groupOf(entry, 1) };
    }
    const before = this.#nodes.get(parent);
    if (before === undefined) {
      if (this.#trimmed) this.#lost = true;
      found('broken_link');
      return { depth: 1, parent, root: null, time: own, group: groupOf(entry, 1) };
    }
    if (own < before.time) found('time_goes_back');
    const depth = before.depth + 1;
    const group = groupOf(entry, depth, before.group);
    return { ...before, depth, parent, time: Number.isNaN(own) ? before.time : own, group };
  }

  /** A leaf that is not in the file is passed over, and the notes before it with it. */
  #believe({ leafUuid }: Entry): void {
    this.#noted = typeof leafUuid === 'string' ? leafUuid : null;
    this.#descends = this.#isBelowNote();
  }

  #isBelowNote(): boolean {
    const noted = this.#noted;
    if (noted === null || noted === this.#tip) return true;
    const end = this.#nodes.get(noted);
    if (end === undefined) {
      if (this.#trimmed) this.#lost = true;
      return true;
    }
    const upTo = end.group?.depth ?? end.depth;
    let at = this.#tip;
    let node = this.#nodeAt(at);
    for (; node !== undefined && node.depth >= upTo; node = this.#nodeAt(at)) {
      if (at === noted || (end.group !== null && node.group?.id === end.group.id)) return true;
      at = node.parent;
    }
    if (this.#trimmed && node === undefined && at !== null) this.#lost = true;
    return false;
  }

  #nodeAt(uuid: string | null): Node | undefined {
    return uuid === null ? undefined : this.#nodes.get(uuid);
  }

  #note(defect: Defect): void {
    if (this.#defects.length < MOST_DEFECTS) this.#defects.push(defect);
  }

  #trim(): void {
    if (this.#nodes.size <= this.#keep) return;
    const [oldest] = this.#nodes.keys();
    if (oldest === undefined) return;
    this.#nodes.delete(oldest);
    this.#trimmed = true;
    if (oldest !== this.#noted) return;
    // All that is remembered is younger than the note: it has nothing more to say, or it is where the session stands.
    if (this.#descends) this.#noted = null;
    else this.#lost = true;
  }
}

/** Entries of one answer share the id of its message; a tool's result belongs to the answer that called it. */
function groupOf(entry: Entry, depth: number, before: Node['group'] = null): Node['group'] {
  const isResult = entry.type === 'user' && blocksOf(entry.message).some(({ type }) => type === 'tool_result');
  if (isResult) return before;
  const id = entry.type === 'assistant' ? entry.message?.id : undefined;
  if (typeof id !== 'string') return null;
  return before?.id === id ? before : { id, depth };
}
