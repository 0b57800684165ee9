import { closeSync, openSync, readSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { type Document, isMap, isNode, isScalar, LineCounter, parseDocument } from 'yaml';
import { asSentence, ThroughlineError } from '../core/errors.ts';
import type { Locate, PlanPath } from '../core/tasks/task-plan.ts';

/** A plan read from a file, not yet checked. */
export interface TaskFile {
  readonly plan: unknown;
  /** Paths in it are relative to the file. */
  readonly base: string;
  readonly locate: Locate;
}

/** Reads YAML, and so also JSON. Throws `invalid` with the line for anything else. */
export function readTaskFile(path: string): TaskFile {
  const file = resolve(path);
  return { ...parseTaskFile(read(file), path), base: dirname(file) };
}

export function parseTaskFile(text: string, name: string): Omit<TaskFile, 'base'> {
  const lines = new LineCounter();
  const document = understood(name, () => parseDocument(text, { lineCounter: lines, prettyErrors: false }));
  const [fault] = [...document.errors, ...document.warnings];
  if (fault !== undefined) {
    const { line } = lines.linePos(fault.pos[0]);
    throw new ThroughlineError('invalid', `${name}, line ${line}: ${asSentence(fault.message)}`, {
      hint: 'A task file is YAML or JSON; docs/tasks.md has an example.',
    });
  }
  const locate: Locate = (at) => {
    const offset = offsetOf(document, at);
    return offset === null ? `${name}: ` : `${name}, line ${lines.linePos(offset).line}: `;
  };
  return { plan: understood(name, () => document.toJS({ maxAliasCount: 100 })), locate };
}

/** The YAML reader throws for aliases that multiply or form a cycle, and for very deep nesting. */
function understood<T>(name: string, read: () => T): T {
  try {
    return read();
  } catch (cause) {
    throw new ThroughlineError('invalid', `Cannot parse ${name}: ${asSentence((cause as Error).message)}`, {
      hint: 'A task file needs no aliases and no deep nesting.',
      cause,
    });
  }
}

/** Where a value begins: for a field, its name; for a missing value, what should contain it. */
function offsetOf(document: Document, path: PlanPath): number | null {
  const parent = document.getIn(path.slice(0, -1), true);
  const last = path.at(-1);
  const pair = isMap(parent) ? parent.items.find(({ key }) => isScalar(key) && key.value === last) : undefined;
  if (pair !== undefined && isNode(pair.key)) return pair.key.range?.[0] ?? null;
  const node = path.length === 0 ? document.contents : document.getIn(path, true);
  if (isNode(node)) return node.range?.[0] ?? null;
  return path.length === 0 ? null : offsetOf(document, path.slice(0, -1));
}

/** The limit of a server, too. The file may be a device or a pipe that never ends. */
const MOST_BYTES = 8 * 1024 * 1024;

function read(file: string): string {
  const bytes = Buffer.alloc(MOST_BYTES + 1);
  let length = 0;
  try {
    const open = openSync(file, 'r');
    try {
      for (let more = -1; more !== 0 && length <= MOST_BYTES; length += more) {
        more = readSync(open, bytes, length, bytes.length - length, null);
      }
    } finally {
      closeSync(open);
    }
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    throw new ThroughlineError('invalid', `Cannot read the task file ${file} (${code}).`, { cause });
  }
  if (length <= MOST_BYTES) return bytes.toString('utf8', 0, length);
  throw new ThroughlineError('too_large', `The task file ${file} has more than ${MOST_BYTES} bytes.`, {
    hint: 'Split it into several files.',
  });
}
