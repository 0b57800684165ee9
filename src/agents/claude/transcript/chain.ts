import { type Defect, type DefectKind, defectsOf, losesContext } from './defects.ts';
import { blocksOf, type Entry, isLink, isMessage, type Line } from './entries.ts';

/*
 * What Claude tells the model is the chain of `parentUuid` from the last entry back to the first, not the lines of the file:
 * an entry that the chain misses is lost without a word. A compaction is a valid root, because the summary after it stands
 * for everything before.
 */
export interface Chain {
  /** The last entry that is no subagent's; null: there is none. */
  readonly leaf: string | null;
  /** Entries from the leaf to the root, both included. */
  readonly count: number;
  /** Where the chain begins; null: it does not reach a root. */
  readonly root: 'start' | 'compaction' | null;
  readonly rootReached: boolean;
  /** The link that leads nowhere; null: none does. */
  readonly broken: { readonly uuid: string; readonly parent: string } | null;
  /** Everything found in the file, in its order, at most a thousand. */
  readonly defects: readonly Defect[];
}

/** Where a session stands: how many entries its chain has, and which is the last. */
export function positionOf({ count, leaf }: Pick<Chain, 'count' | 'leaf'>): string | null {
  return leaf === null ? null : `${count}:${leaf}`;
}

/** The entry that a position names; null: it is none of ours. */
export function leafOf(position: string): string | null {
  return /^\d+:(.+)$/.exec(position)?.[1] ?? null;
}

/** Whether all of the chain reaches the model as it stands in the file. */
export function isWhole(chain: Chain): boolean {
  return chain.leaf !== null && chain.rootReached && !chain.defects.some(losesContext);
}

interface Node {
  readonly depth: number;
  readonly root: Chain['root'];
  readonly broken: Chain['broken'];
}

const MOST_DEFECTS = 1_000;

/** Follows a transcript line by line. An entry's depth is its parent's plus one, so nothing has to be walked twice. */
export class ChainIndex {
  readonly #keep: number;
  readonly #nodes = new Map<string, Node>();
  readonly #defects: Defect[] = [];
  /** Calls without a result so far. */
  readonly #calls = new Map<string, Defect>();
  #leaf: string | null = null;
  #links = 0;
  #lost = false;

  /** `keep`: how many of the newest entries are remembered. Older ones are hardly ever a parent again. */
  constructor(keep = Number.POSITIVE_INFINITY) {
    this.#keep = keep;
  }

  /** An entry named a parent that is older than what is remembered: only reading it all again tells where it stands. */
  get lost(): boolean {
    return this.#lost;
  }

  /** Nothing that counts has been added yet. */
  get empty(): boolean {
    return this.#links === 0;
  }

  add(line: Line): void {
    for (const defect of defectsOf(line)) this.#note(defect);
    const { entry, number } = line;
    if (entry === null || !isLink(entry)) return;
    const found = (kind: DefectKind) => this.#note({ kind, line: number, uuid: entry.uuid });
    if (this.#nodes.has(entry.uuid)) found('duplicate_uuid');
    this.#nodes.set(entry.uuid, this.#nodeOf(entry, found));
    this.#links += 1;
    this.#leaf = entry.uuid;
    this.#follow(entry, number);
    this.#trim();
  }

  /** Where the session stood when this entry was its last; null: it is not remembered. */
  positionAt(uuid: string): string | null {
    const node = this.#nodes.get(uuid);
    return node === undefined ? null : positionOf({ count: node.depth, leaf: uuid });
  }

  chain(): Chain {
    const node = this.#leaf === null ? undefined : this.#nodes.get(this.#leaf);
    const root = node?.root ?? null;
    const empty: Defect[] = this.empty ? [{ kind: 'empty', line: 0, uuid: null }] : [];
    return {
      leaf: this.#leaf,
      count: node?.depth ?? 0,
      root,
      rootReached: root !== null,
      broken: node?.broken ?? null,
      defects: [...this.#defects, ...this.#calls.values(), ...empty],
    };
  }

  #nodeOf(entry: Entry & { readonly uuid: string }, found: (kind: DefectKind) => void): Node {
    const parent = entry.parentUuid;
    if (typeof parent !== 'string') {
      const compacted = entry.subtype === 'compact_boundary';
      if (!compacted && (!this.empty || parent === undefined)) found('second_root');
      return { depth: 1, root: compacted ? 'compaction' : 'start', broken: null };
    }
    const before = this.#nodes.get(parent);
    if (before !== undefined) return { ...before, depth: before.depth + 1 };
    if (this.#links > this.#keep) this.#lost = true;
    found('broken_link');
    return { depth: 1, root: null, broken: { uuid: entry.uuid, parent } };
  }

  #follow(entry: Entry & { readonly uuid: string }, line: number): void {
    if (!isMessage(entry)) return;
    for (const block of blocksOf(entry.message)) {
      if (block.type === 'tool_use' && typeof block.id === 'string') {
        this.#calls.set(block.id, { kind: 'dangling_tool', line, uuid: entry.uuid });
      }
      if (block.type === 'tool_result' && typeof block.tool_use_id === 'string') this.#calls.delete(block.tool_use_id);
    }
  }

  #note(defect: Defect): void {
    if (this.#defects.length < MOST_DEFECTS) this.#defects.push(defect);
  }

  #trim(): void {
    if (this.#nodes.size <= this.#keep) return;
    const [oldest] = this.#nodes.keys();
    if (oldest !== undefined) this.#nodes.delete(oldest);
  }
}
