import { closeSync, openSync, readSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { type Document, isMap, isNode, isScalar, LineCounter, parseDocument } from 'yaml';
import { asSentence, ThroughlineError } from '../core/errors.ts';
import type { Locate, PlanPath } from '../core/tasks/task-plan.ts';

/** A plan as it stands in a file, still to be checked. */
export interface TaskFile {
  readonly plan: unknown;
  /** Paths in it are relative to the file. */
  readonly base: string;
  readonly locate: Locate;
}

/** YAML, and so also JSON. Throws `invalid` with the line for what is neither. */
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
      hint: 'A file of tasks is YAML, or JSON: docs/tasks.md has an example.',
    });
  }
  const locate: Locate = (at) => {
    const offset = offsetOf(document, at);
    return offset === null ? `${name}: ` : `${name}, line ${lines.linePos(offset).line}: `;
  };
  return { plan: understood(name, () => document.toJS({ maxAliasCount: 100 })), locate };
}

/** Aliases that multiply or go in circles, and brackets in brackets without end, are thrown by the reader of YAML. */
function understood<T>(name: string, read: () => T): T {
  try {
    return read();
  } catch (cause) {
    throw new ThroughlineError('invalid', `${name} cannot be understood: ${asSentence((cause as Error).message)}`, {
      hint: 'A file of tasks needs no aliases, and nothing deeper than a task with its gate.',
      cause,
    });
  }
}

/** Where a value begins; of a field its name; of what is not there, what it would be in. */
function offsetOf(document: Document, path: PlanPath): number | null {
  const parent = document.getIn(path.slice(0, -1), true);
  const last = path.at(-1);
  const pair = isMap(parent) ? parent.items.find(({ key }) => isScalar(key) && key.value === last) : undefined;
  if (pair !== undefined && isNode(pair.key)) return pair.key.range?.[0] ?? null;
  const node = path.length === 0 ? document.contents : document.getIn(path, true);
  if (isNode(node)) return node.range?.[0] ?? null;
  return path.length === 0 ? null : offsetOf(document, path.slice(0, -1));
}

/** As much as a server takes, and no more: it may be a device, or a pipe, that never ends. */
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
    throw new ThroughlineError('invalid', `The file of tasks ${file} cannot be read (${code}).`, { cause });
  }
  if (length <= MOST_BYTES) return bytes.toString('utf8', 0, length);
  throw new ThroughlineError('too_large', `The file of tasks ${file} has more than ${MOST_BYTES} bytes.`, {
    hint: 'Make several files of it.',
  });
}
