import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, realpathSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { dirname, isAbsolute, join } from 'node:path';
import { isObject } from '../../../core/content.ts';
import type { Capabilities } from '../connection/capabilities.ts';

/** What was learnt of an agent, in one version of its program. */
export interface Learnt extends Capabilities {
  /** The window of its model as it last said, by the name of the agent that has this model. */
  readonly windows: Readonly<Record<string, number>>;
  /** Whether it was ever seen to load a session with all that this was told. */
  readonly honest: boolean;
  /** Sessions that it has loaded since, one after the other, without what they were told. */
  readonly lacking: readonly Lacking[];
}

export interface Lacking {
  readonly session: string;
  /** What was wrong with it. */
  readonly detail: string;
}

/**
 * So many sessions in a row that lacked what they were told make a liar of an agent. One session may have been damaged by somebody
 * else, or have lost what its agent had not written when it was killed: that costs this session alone.
 */
const MOST_LACKING = 3;
/** Of an agent that was never seen to load a session whole. */
const MOST_LACKING_AT_FIRST = 2;

/** How it was caught opening sessions without what they were told; null: it is believed. */
export function lieOf({ honest, lacking }: Pick<Learnt, 'honest' | 'lacking'>): string | null {
  const most = honest ? MOST_LACKING : MOST_LACKING_AT_FIRST;
  return lacking.length >= most ? (lacking.at(-1)?.detail ?? null) : null;
}

/**
 * Keeps what was learnt, in a file of the data home for each version of each program: so an agent need not be started to know
 * what it can do, and one that was caught lying is not asked again by the next process. The file may be deleted at any time.
 */
export class AgentMemory {
  readonly file: string;
  #learnt: Learnt | null | undefined;

  constructor(folder: string, command: readonly string[]) {
    this.file = join(folder, `${fingerprint(command)}.json`);
  }

  get learnt(): Learnt | null {
    this.#learnt ??= readLearnt(this.file);
    return this.#learnt;
  }

  /** It was started, and says this. What was learnt of another version does not count any more. */
  saw(capabilities: Capabilities): Learnt {
    const known = this.#now();
    const same = known !== null && known.name === capabilities.name && known.version === capabilities.version;
    const { windows, honest, lacking } = same ? known : UNKNOWN;
    return this.#keep({ ...capabilities, windows, honest, lacking });
  }

  /** It said that a session is loaded which lacks what it was told. */
  lacked(session: string, detail: string): void {
    this.#change(({ lacking }) => {
      // The same session again shows nothing new, however often it is asked for.
      const others = lacking.filter((one) => one.session !== session);
      return { lacking: [...others, { session, detail }].slice(-MOST_LACKING) };
    });
  }

  /** It loaded a session with all that this was told. */
  loaded(): void {
    this.#change(() => ({ honest: true, lacking: [] }));
  }

  /** Agents that are one program may have models of different size. */
  window(agent: string, tokens: number): void {
    this.#change(({ windows }) => ({ windows: { ...windows, [agent]: tokens } }));
  }

  #change(change: (now: Learnt) => Partial<Learnt>): void {
    const now = this.#now();
    if (now !== null) this.#keep({ ...now, ...change(now) });
  }

  /** Another process may have learnt something since we last looked. */
  #now(): Learnt | null {
    this.#learnt = readLearnt(this.file) ?? this.#learnt ?? null;
    return this.#learnt;
  }

  #keep(learnt: Learnt): Learnt {
    if (JSON.stringify(learnt) === JSON.stringify(this.#learnt)) return learnt;
    this.#learnt = learnt;
    const draft = `${this.file}.${process.pid}`;
    try {
      mkdirSync(dirname(this.file), { recursive: true, mode: 0o700 });
      writeFileSync(draft, JSON.stringify(learnt), { mode: 0o600 });
      renameSync(draft, this.file);
    } catch {
      // Without the file it is known to this process alone, and learnt again by the next.
    }
    return learnt;
  }
}

const UNKNOWN = { windows: {}, honest: false, lacking: [] } as const;

/** Null: nothing was learnt, or what is there is no use. */
function readLearnt(file: string): Learnt | null {
  try {
    const value: unknown = JSON.parse(readFileSync(file, 'utf8'));
    if (!isObject(value) || typeof value.version !== 'string' || typeof value.load !== 'boolean') return null;
    const { windows = {}, honest = false, lacking = [], ...can } = value as unknown as Learnt;
    return { ...can, windows, honest, lacking: lacking.filter(isObject) };
  } catch {
    return null;
  }
}

/** Another one whenever any file that the command names, or the package that it belongs to, is another one. */
function fingerprint(command: readonly string[]): string {
  return createHash('sha256')
    .update(JSON.stringify(command.map((word) => [word, isAbsolute(word) ? stateOf(word) : null])))
    .digest('hex')
    .slice(0, 32);
}

function stateOf(word: string): unknown {
  try {
    const file = realpathSync(word);
    const { size, mtimeMs } = statSync(file);
    return [file, size, mtimeMs, packageVersion(dirname(file))];
  } catch {
    return null;
  }
}

/** npm gives the files of every version the same date. Null: it is in no package. */
function packageVersion(folder: string): string | null {
  try {
    return String((JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as { version?: unknown }).version);
  } catch {
    return dirname(folder) === folder ? null : packageVersion(dirname(folder));
  }
}
