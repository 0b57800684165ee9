import { createHash } from 'node:crypto';
import { basename, dirname, isAbsolute, join } from 'node:path';
import { isObject } from '../../../core/turn/content.ts';
import type { OpenSandbox } from '../../../ports/sandbox.ts';
import { readLearntFile, writeLearntFile } from '../../shared/learnt-file.ts';
import type { Capabilities } from '../connection/capabilities.ts';

/** What was learnt about one version of an agent's program. */
export interface Learnt extends Capabilities {
  /** The last known window of its model in tokens, by the name of the agent that uses this model. */
  readonly windows: Readonly<Record<string, number>>;
  /** Whether it ever loaded a session with its whole history. */
  readonly loadedWhole: boolean;
  /** The sessions in a row that it loaded without their history since then. */
  readonly incomplete: readonly IncompleteLoad[];
}

interface IncompleteLoad {
  readonly session: string;
  /** What was missing. */
  readonly detail: string;
}

/**
 * After this many incomplete sessions in a row, the agent is not asked to load again. One is not enough: somebody may have damaged that
 * session, or the agent was killed before it had written everything.
 */
const MOST_INCOMPLETE = 3;
/** For an agent that never loaded a session whole. */
const MOST_INCOMPLETE_AT_FIRST = 2;

/** Why this agent is not asked to open a session again: what the last one lacked. Null: it is asked. */
export function whyNotReopened({ loadedWhole, incomplete }: Pick<Learnt, 'loadedWhole' | 'incomplete'>): string | null {
  const most = loadedWhole ? MOST_INCOMPLETE : MOST_INCOMPLETE_AT_FIRST;
  return incomplete.length >= most ? (incomplete.at(-1)?.detail ?? null) : null;
}

/**
 * Keeps what was learnt in the data home, in one file for each version of each program. So an agent need not be started to know what
 * it can do, and the next process does not use an agent to load sessions that has lost their history before. The file may be deleted at
 * any time.
 */
export class AgentMemory {
  readonly file: string;
  #learnt: Learnt | null | undefined;

  /** `folder`: one of our own. `fingerprint`: of the program. */
  constructor(folder: string, fingerprint: string) {
    this.file = join(folder, `${fingerprint}.json`);
  }

  get learnt(): Learnt | null {
    this.#learnt ??= readLearnt(this.file);
    return this.#learnt;
  }

  /** The agent was started and can do this. What was learnt about another version is dropped. */
  saw(capabilities: Capabilities): Learnt {
    const known = this.#now();
    const same = known !== null && known.name === capabilities.name && known.version === capabilities.version;
    const { windows, loadedWhole, incomplete } = same ? known : UNKNOWN;
    return this.#keep({ ...capabilities, windows, loadedWhole, incomplete });
  }

  /** The agent said that a session is loaded, and the session lacks a part of its history. */
  loadedIncomplete(session: string, detail: string): void {
    this.#change(({ incomplete }) => {
      // The same session again shows nothing new.
      const others = incomplete.filter((one) => one.session !== session);
      return { incomplete: [...others, { session, detail }].slice(-MOST_INCOMPLETE) };
    });
  }

  /** The agent loaded a session with its whole history. */
  loadedWhole(): void {
    this.#change(() => ({ loadedWhole: true, incomplete: [] }));
  }

  /** Several agents of the settings may be one program with different models. */
  window(agent: string, tokens: number): void {
    this.#change(({ windows }) => ({ windows: { ...windows, [agent]: tokens } }));
  }

  #change(change: (now: Learnt) => Partial<Learnt>): void {
    const now = this.#now();
    if (now !== null) this.#keep({ ...now, ...change(now) });
  }

  /** Another process may have learnt something meanwhile. */
  #now(): Learnt | null {
    this.#learnt = readLearnt(this.file) ?? this.#learnt ?? null;
    return this.#learnt;
  }

  #keep(learnt: Learnt): Learnt {
    if (JSON.stringify(learnt) === JSON.stringify(this.#learnt)) return learnt;
    this.#learnt = learnt;
    writeLearntFile(this.file, learnt);
    return learnt;
  }
}

const UNKNOWN = { windows: {}, loadedWhole: false, incomplete: [] } as const;

/** Null: nothing was learnt, or the file is damaged. */
function readLearnt(file: string): Learnt | null {
  const value = readLearntFile(file);
  if (typeof value?.version !== 'string' || typeof value.load !== 'boolean') return null;
  const { windows = {}, loadedWhole = false, incomplete = [], ...can } = value as unknown as Learnt;
  return { ...can, windows, loadedWhole, incomplete: incomplete.filter(isObject) };
}

/** Changes whenever a file that the command names changes in the sandbox, or the version of its package. */
export async function fingerprintOf(command: readonly string[], sandbox: OpenSandbox): Promise<string> {
  const states = await Promise.all(
    command.map(async (word) => [word, isAbsolute(word) ? await stateOf(word, sandbox) : null]),
  );
  return createHash('sha256')
    .update(JSON.stringify([sandbox.host, states]))
    .digest('hex')
    .slice(0, 32);
}

async function stateOf(word: string, sandbox: OpenSandbox): Promise<unknown> {
  try {
    const file = await sandbox.realPath(word);
    const stat = await (await sandbox.folder(dirname(file))).stat(basename(file));
    return stat && [file, stat.size, stat.modifiedAt, await packageVersion(dirname(file), sandbox)];
  } catch {
    return null;
  }
}

const MOST_MANIFEST_BYTES = 1024 * 1024;

/** npm gives the files of all versions the same date, so the version counts as well. Null: it is in no package. */
async function packageVersion(folder: string, sandbox: OpenSandbox): Promise<string | null> {
  try {
    const manifest = await (await sandbox.folder(folder)).read('package.json', { most: MOST_MANIFEST_BYTES });
    if (manifest !== null) return String(JSON.parse(Buffer.from(manifest.bytes).toString('utf8')).version);
  } catch {
    // It cannot be read: try the folder above.
  }
  return dirname(folder) === folder ? null : packageVersion(dirname(folder), sandbox);
}
