import { join, resolve } from 'node:path';
import { ThroughlineError } from '../../core/errors.ts';
import { HistoryBuilder, type SessionHistory } from '../../core/restore/adopted.ts';
import type { Update } from '../../core/turn/update.ts';
import type { AgentEvent, SentPrompt, Tail } from '../../ports/agent.ts';
import type { FileRead, Folder, OpenSandbox, Range } from '../../ports/sandbox.ts';
import { parseObject } from '../shared/json.ts';
import type { ScriptedOptions } from './options.ts';
import type { Entry } from './protocol.ts';

/* The program's storage as its adapter reads it: `<dir>/<session id>.jsonl`, one entry a line, append-only. */

/** Where the sessions of a sandbox are kept. A tied agent keeps them by working directory, as Claude does. */
export function storageDir(sandbox: OpenSandbox, options: ScriptedOptions): string {
  const { root, path } = storageIn(sandbox, options);
  return join(root, path);
}

/** `root` is trusted, because the settings or we have named it. What is in it is not: the agent may have made it. */
function storageIn({ state, work }: OpenSandbox, { dir, tied }: ScriptedOptions): { root: string; path: string } {
  const own = tied ? work.replaceAll(/[^A-Za-z0-9]/g, '-') : '';
  return dir === null ? { root: state, path: join('scripted', own) } : { root: resolve(state, dir), path: own };
}

/** The file of one session. */
export interface SessionFile {
  readonly folder: Folder;
  readonly path: string;
  /** How large it was when it was last read. */
  size?: number;
}

/** Null: not a valid session id. */
export async function storageFile(
  sandbox: OpenSandbox,
  options: ScriptedOptions,
  sessionId: string,
): Promise<SessionFile | null> {
  if (!isSessionId(sessionId)) return null;
  const { root, path } = storageIn(sandbox, options);
  return { folder: await sandbox.folder(root), path: join(path, `${sessionId}.jsonl`) };
}

export function isSessionId(id: string): boolean {
  return /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/.test(id);
}

/** A position: how many entries there are, and which is the last. */
export function positionAt(n: number, uuid: string | null): string {
  return `${n}:${uuid ?? ''}`;
}

/** Null: there is no such file, or it is empty. Takes the same time at any length. */
export async function readPosition(file: SessionFile): Promise<string | null> {
  const last = await lastEntry(file, () => true);
  return last === null ? null : positionAt(last.n, last.uuid);
}

/** Searches from the end. Null: not found. */
export function findEntry(file: SessionFile, uuid: string): Promise<Entry | null> {
  return lastEntry(file, (entry) => entry.uuid === uuid);
}

/** What the session knows, as turns: the chain that ends in its last entry. Null: there is no file. */
export async function historyOf(file: SessionFile): Promise<SessionHistory | null> {
  const text = await readWhole(file);
  if (text === null) return null;
  const entries = text.split('\n').flatMap((line) => parseLine(line) ?? []);
  const byId = new Map(entries.map((entry) => [entry.uuid, entry]));
  const chain: Entry[] = [];
  for (let entry = entries.at(-1); entry !== undefined; entry = byId.get(entry.parent ?? '')) chain.push(entry);
  const history = new HistoryBuilder();
  for (const entry of chain.reverse()) {
    if (entry.role === 'user') history.prompt([{ type: 'text', text: entry.text }], entry.at);
    else history.update(entry.update, entry.at);
  }
  return history.history(await readPosition(file));
}

/** What the agent did for a prompt, up to the next one. Null: there is no file. */
export async function tailOf(file: SessionFile, { prompt, position }: SentPrompt): Promise<Tail | null> {
  const text = await readWhole(file);
  if (text === null) return null;
  const follows = new Set<string | null>(prompt === null ? [] : [prompt]);
  const updates: Update[] = [];
  let last: Entry | null = null;
  for (const line of text.split('\n')) {
    const entry = parseLine(line);
    last = entry ?? last;
    if (entry?.role !== 'agent' || !follows.has(entry.parent)) continue;
    follows.add(entry.uuid);
    updates.push(entry.update);
  }
  const current = last && positionAt(last.n, last.uuid);
  return { updates, position: current === position || follows.has(last?.uuid ?? null) ? current : null };
}

type ProofEvent = Extract<AgentEvent, { type: 'proof' }>;

interface Landing {
  readonly file: SessionFile;
  /** The prompt's id, and the entry that the program says it came after. */
  readonly prompt: string;
  readonly parent: string | null;
  /** The position that the prompt must follow; null: the session must be empty. */
  readonly expected: string | null;
}

/** Checks in the session's own storage that the prompt follows the expected position. */
export async function proofOf({ file, prompt, parent, expected }: Landing): Promise<ProofEvent> {
  const refuted = (detail: string) => ({ type: 'proof', proof: 'refuted', detail }) as const;
  const entry = await findEntry(file, prompt);
  if (entry === null) return refuted('the prompt is not in the session’s storage');
  if (entry.parent !== parent) return refuted('the agent and its storage disagree on what came before the prompt');
  const landed = positionAt(entry.n - 1, entry.parent);
  const wanted = expected ?? positionAt(0, null);
  if (landed !== wanted) return refuted(`the prompt landed at ${landed}, not at ${wanted}`);
  return { type: 'proof', proof: 'proved', detail: `the prompt landed at ${landed}` };
}

/** More than any test lets it write. */
const MOST_BYTES = 256 * 1024 * 1024;

/** Null: there is no file, or it cannot be read. */
async function readWhole(file: SessionFile): Promise<string | null> {
  const read = await readPart(file, { most: MOST_BYTES });
  return read && Buffer.from(read.bytes).toString('utf8');
}

function readPart({ folder, path }: SessionFile, range: Range): Promise<FileRead | null> {
  return folder.read(path, range).catch((error: unknown) => {
    if (error instanceof ThroughlineError) return null;
    throw error;
  });
}

const FIRST_READ = 4_096;

/** The last entry that is `wanted`. Reads backwards in growing pieces. Null: there is none, or no file. */
async function lastEntry(file: SessionFile, wanted: (entry: Entry) => boolean): Promise<Entry | null> {
  // Mostly the file has grown only a little since the last read. Then one read reaches its end.
  let from = Math.max(0, (file.size ?? 0) - FIRST_READ);
  let read = await readPart(file, { from, most: 4 * FIRST_READ });
  const size = read?.size ?? 0;
  file.size = size;
  const reachesEnd = from + (read?.bytes.length ?? 0) >= size;
  for (let length = FIRST_READ; ; length *= 4) {
    if (!reachesEnd || length > FIRST_READ) {
      from = Math.max(0, size - length);
      read = await readPart(file, { from, most: size - from });
    }
    const lines = Buffer.from(read?.bytes ?? [])
      .toString('utf8')
      .split('\n');
    // The first line begins before these bytes.
    const whole = from > 0 ? lines.slice(1) : lines;
    const found = lastIn(whole, wanted);
    if (found !== null || from === 0) return found;
  }
}

function lastIn(lines: readonly string[], wanted: (entry: Entry) => boolean): Entry | null {
  for (const line of lines.toReversed()) {
    const entry = parseLine(line);
    if (entry !== null && wanted(entry)) return entry;
  }
  return null;
}

/** Null: the line is incomplete or damaged. */
function parseLine(line: string): Entry | null {
  // After the last newline there is an empty line. To throw for it takes as long as all the rest of reading a position.
  const entry = line === '' ? null : (parseObject(line) as Partial<Entry> | null);
  return typeof entry?.uuid === 'string' && typeof entry.n === 'number' ? (entry as Entry) : null;
}
