import { type Defect, type DefectKind, defectsOf, losesContext, timeOf } from './defects.ts';
import { blocksOf, type Entry, isLink, isMessage, type Line, type Link } from './entries.ts';

/*
 * Claude sends the model the chain of `parentUuid` from a leaf back to a root, not the lines of the file. An entry outside of the
 * chain is lost without an error. A compaction is a valid root: the summary after it replaces what was before.
 *
 * The leaf is the last entry of the file, with one exception (seen with 2.1.325): sometimes Claude notes its leaf in a line
 * `last-prompt`. If the last entry does not descend from the leaf in the newest note, Claude continues from the noted leaf. So when two
 * processes continue one session, either may lose its turns.
 *
 * Tools that the model called at once fork the chain: each result follows its own call, and the answer follows the last result.
 * Claude joins them again by the id of the message, so all of them count as one place (`group`).
 */
export interface Chain {
  /** The entry from which Claude would continue; null: there is none. */
  readonly leaf: string | null;
  /** Entries from the leaf to the root, both included. */
  readonly count: number;
  /** Where the chain begins; null: it does not reach a root. */
  readonly root: 'start' | 'compaction' | null;
  /** The first thousand defects of the file, also those outside of the chain: a damaged file is not trusted. */
  readonly defects: readonly Defect[];
}

/** A position: how many entries the chain has, and which is the last. */
export function positionOf({ count, leaf }: Pick<Chain, 'count' | 'leaf'>): string | null {
  return leaf === null ? null : `${count}:${leaf}`;
}

/** The last entry of a position; null: not a position. */
export function leafOf(position: string): string | null {
  return /^\d+:(.+)$/.exec(position)?.[1] ?? null;
}

/** Whether the model gets all of the chain as it is in the file. */
export function isWhole(chain: Chain): boolean {
  return chain.leaf !== null && chain.root !== null && !chain.defects.some(losesContext);
}

interface Node extends Pick<Chain, 'root'> {
  /** The entry of the compaction that is the root; null: none is. */
  readonly compaction: string | null;
  readonly depth: number;
  readonly parent: string | null;
  /** The time of the last message up to here. */
  readonly time: number;
  /** The answer of the model that the entry belongs to, as a part or as the result of a tool; null: none. */
  readonly group: { readonly id: string; readonly depth: number } | null;
}

const MAX_DEFECTS = 1_000;

/** Follows a transcript line by line. An entry's depth is its parent's plus one, so the chain is never walked again. */
export class ChainIndex {
  readonly #nodes = new Map<string, Node>();
  readonly #defects: Defect[] = [];
  readonly #calls = new OpenCalls();
  /** The last link of the file. */
  #tip: string | null = null;
  /** The leaf that Claude noted last, and whether the tip descends from it. */
  #noted: string | null = null;
  #descends = true;

  add(line: Line): void {
    for (const defect of defectsOf(line)) this.#note(defect);
    const { entry, number } = line;
    if (entry?.type === 'last-prompt') this.#followNote(entry);
    if (entry === null || !isLink(entry)) return;
    const found = (kind: DefectKind) => this.#note({ kind, line: number, uuid: entry.uuid });
    this.#nodes.set(entry.uuid, this.#nodeOf(entry, found));
    this.#calls.add(entry, number);
    const continuesTip = entry.parentUuid === this.#tip;
    this.#tip = entry.uuid;
    if (!continuesTip) this.#descends = this.#isBelowNote();
  }

  /** The position when this entry was the last one; null: it is not in the file. */
  positionAt(uuid: string): string | null {
    const node = this.#nodes.get(uuid);
    return node === undefined ? null : positionOf({ count: node.depth, leaf: uuid });
  }

  /** The compaction at which the chain of this entry begins; null: it begins at the start, or is not in the file. */
  compactionOf(uuid: string): string | null {
    return this.#nodes.get(uuid)?.compaction ?? null;
  }

  chain(): Chain {
    const leaf = this.#descends ? this.#tip : this.#noted;
    const node = this.#nodeAt(leaf);
    const empty: Defect[] = this.#tip === null ? [{ kind: 'empty', line: 0, uuid: null }] : [];
    return {
      leaf,
      count: node?.depth ?? 0,
      root: node?.root ?? null,
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
      const compaction = compacted ? entry.uuid : null;
      return { depth: 1, parent: null, root, compaction, time: own, group: groupOf(entry, 1) };
    }
    const before = this.#nodes.get(parent);
    if (before === undefined) {
      found('broken_link');
      return { depth: 1, parent, root: null, compaction: null, time: own, group: groupOf(entry, 1) };
    }
    if (own < before.time) found('time_goes_back');
    const depth = before.depth + 1;
    const group = groupOf(entry, depth, before.group);
    return { ...before, depth, parent, time: Number.isNaN(own) ? before.time : own, group };
  }

  /** A note whose leaf is not in the file is ignored, and replaces the notes before it. */
  #followNote({ leafUuid }: Entry): void {
    this.#noted = typeof leafUuid === 'string' ? leafUuid : null;
    this.#descends = this.#isBelowNote();
  }

  #isBelowNote(): boolean {
    const noted = this.#noted;
    if (noted === null || noted === this.#tip) return true;
    const end = this.#nodes.get(noted);
    if (end === undefined) return true;
    const upTo = end.group?.depth ?? end.depth;
    let at = this.#tip;
    for (let node = this.#nodeAt(at); node !== undefined && node.depth >= upTo; node = this.#nodeAt(at)) {
      if (at === noted || (end.group !== null && node.group?.id === end.group.id)) return true;
      at = node.parent;
    }
    return false;
  }

  #nodeAt(uuid: string | null): Node | undefined {
    return uuid === null ? undefined : this.#nodes.get(uuid);
  }

  #note(defect: Defect): void {
    if (this.#defects.length < MAX_DEFECTS) this.#defects.push(defect);
  }
}

/** Entries of one answer share the id of its message. A tool's result belongs to the answer that called it. */
function groupOf(entry: Entry, depth: number, before: Node['group'] = null): Node['group'] {
  const isResult = entry.type === 'user' && blocksOf(entry.message).some(({ type }) => type === 'tool_result');
  if (isResult) return before;
  const id = entry.type === 'assistant' ? entry.message?.id : undefined;
  if (typeof id !== 'string') return null;
  return before?.id === id ? before : { id, depth };
}

interface Call {
  readonly line: number;
  readonly uuid: string | null;
  /** Something other than results came after it, so Claude adds no result for it. */
  passed: boolean;
}

/** Calls of tools that have no result yet. */
class OpenCalls {
  readonly #calls = new Map<string, Call>();
  /** The id of the model's last answer. It has several entries, one for each of its blocks. */
  #answer: string | undefined;

  add(entry: Entry, line: number): void {
    if (!isMessage(entry)) return;
    const blocks = blocksOf(entry.message);
    for (const block of blocks) {
      if (block.type === 'tool_result' && typeof block.tool_use_id === 'string') this.#calls.delete(block.tool_use_id);
    }
    if (this.#passesCalls(entry)) for (const call of this.#calls.values()) call.passed = true;
    for (const block of blocks) {
      if (block.type !== 'tool_use' || typeof block.id !== 'string') continue;
      this.#calls.set(block.id, { line, uuid: entry.uuid ?? null, passed: false });
    }
  }

  defects(): Defect[] {
    return [...this.#calls.values()].map(({ line, uuid, passed }) => {
      return { kind: passed ? 'dangling_tool' : 'open_tool', line, uuid };
    });
  }

  /** Whether the conversation continues after the open calls. */
  #passesCalls({ type, isMeta, message }: Entry): boolean {
    if (type === 'user') return isMeta !== true && blocksOf(message).some((block) => block.type !== 'tool_result');
    const same = message?.id !== undefined && message.id === this.#answer;
    this.#answer = message?.id;
    return !same;
  }
}
