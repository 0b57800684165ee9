import { closeSync, fstatSync, openSync, readFileSync, readSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { HistoryBuilder, type SessionHistory } from '../../core/restore/adopted.ts';
import type { Update } from '../../core/turn/update.ts';
import type { AgentEvent, SentPrompt, Tail } from '../../ports/agent.ts';
import type { OpenSandbox } from '../../ports/sandbox.ts';
import type { ScriptedOptions } from './options.ts';
import type { Entry } from './protocol.ts';

/*
 * The program's storage as its adapter reads it: `<dir>/<session id>.jsonl`, one entry a line, append-only.
 * Reads are synchronous: a few kilobytes from the page cache are read faster than an asynchronous read starts.
 */

/** Where the sessions of a sandbox are kept. A tied agent keeps them by working directory, as Claude does. */
export function storageDir(sandbox: OpenSandbox, options: ScriptedOptions): string {
  const base = resolve(sandbox.state, options.dir ?? 'scripted');
  return options.tied ? join(base, sandbox.work.replaceAll(/[^A-Za-z0-9]/g, '-')) : base;
}

/** Null: not a valid session id. */
export function storageFile(dir: string, sessionId: string): string | null {
  return /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/.test(sessionId) ? join(dir, `${sessionId}.jsonl`) : null;
}

/** A position: how many entries there are, and which is the last. */
export function positionAt(n: number, uuid: string | null): string {
  return `${n}:${uuid ?? ''}`;
}

/** Null: there is no such file, or it is empty. Takes the same time at any length. */
export function readPosition(file: string): string | null {
  const last = lastEntry(file, () => true);
  return last === null ? null : positionAt(last.n, last.uuid);
}

/** Searches from the end. Null: not found. */
export function findEntry(file: string, uuid: string): Entry | null {
  return lastEntry(file, (entry) => entry.uuid === uuid);
}

/** What the session knows, as turns: the chain that ends in its last entry. Null: there is no file. */
export function historyOf(file: string): SessionHistory | null {
  const text = readWhole(file);
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
  return history.history(readPosition(file));
}

/** What the agent did for a prompt, up to the next one. Null: there is no file. */
export function tailOf(file: string, { prompt, position }: SentPrompt): Tail | null {
  const text = readWhole(file);
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
  const stands = last && positionAt(last.n, last.uuid);
  return { updates, position: stands === position || follows.has(last?.uuid ?? null) ? stands : null };
}

interface Landing {
  /** The session's file. */
  readonly file: string;
  /** The prompt's id, and the entry that the program says it came after. */
  readonly prompt: string;
  readonly parent: string | null;
  /** The position that the prompt must follow; null: the session must be empty. */
  readonly expected: string | null;
}

/** Checks in the session's own storage that the prompt follows the expected position. */
export function proofOf({ file, prompt, parent, expected }: Landing): Extract<AgentEvent, { type: 'proof' }> {
  const refuted = (detail: string) => ({ type: 'proof', proof: 'refuted', detail }) as const;
  const entry = findEntry(file, prompt);
  if (entry === null) return refuted('the prompt is not in the session’s storage');
  if (entry.parent !== parent) return refuted('the agent and its storage disagree on what came before the prompt');
  const landed = positionAt(entry.n - 1, entry.parent);
  const wanted = expected ?? positionAt(0, null);
  if (landed !== wanted) return refuted(`the prompt landed at ${landed}, not at ${wanted}`);
  return { type: 'proof', proof: 'proved', detail: `the prompt landed at ${landed}` };
}

/** Null: there is no file. */
function readWhole(file: string): string | null {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return null;
  }
}

const FIRST_READ = 4_096;

/** Reads backwards in growing pieces until an entry is wanted. Null: none is, or there is no file. */
function lastEntry(file: string, wanted: (entry: Entry) => boolean): Entry | null {
  let fd: number;
  try {
    fd = openSync(file, 'r');
  } catch {
    return null;
  }
  try {
    const { size } = fstatSync(fd);
    for (let length = FIRST_READ; ; length *= 4) {
      const from = Math.max(0, size - length);
      const bytes = Buffer.allocUnsafe(size - from);
      const read = bytes.subarray(0, readSync(fd, bytes, 0, bytes.length, from));
      const lines = read.toString('utf8').split('\n');
      // The first line begins before these bytes.
      const whole = from > 0 ? lines.slice(1) : lines;
      const found = whole.map(parseLine).findLast((entry) => entry !== null && wanted(entry)) ?? null;
      if (found !== null || from === 0) return found;
    }
  } finally {
    closeSync(fd);
  }
}

/** Null: the line is incomplete or damaged. */
function parseLine(line: string): Entry | null {
  try {
    const entry = line === '' ? null : (JSON.parse(line) as Partial<Entry> | null);
    return typeof entry?.uuid === 'string' && typeof entry.n === 'number' ? (entry as Entry) : null;
  } catch {
    return null;
  }
}
