import { readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { type Document, isMap, isNode, isScalar, LineCounter, parseDocument } from 'yaml';
import { ThroughlineError } from '../core/errors.ts';
import type { Locate, PlanPath } from '../core/task-plan.ts';

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
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
  const [fault] = [...document.errors, ...document.warnings];
  if (fault !== undefined) {
    const { line } = lines.linePos(fault.pos[0]);
    throw new ThroughlineError('invalid', `${name}, line ${line}: ${fault.message.replace(/\.?$/, '.')}`);
  }
  const locate: Locate = (at) => {
    const offset = offsetOf(document, at);
    return offset === null ? `${name}: ` : `${name}, line ${lines.linePos(offset).line}: `;
  };
  try {
    return { plan: document.toJS({ maxAliasCount: 100 }), locate };
  } catch (cause) {
    throw new ThroughlineError('invalid', `${name}: ${(cause as Error).message}.`, { cause });
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

function read(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (cause) {
    throw new ThroughlineError('invalid', `The file of tasks ${file} cannot be read.`, { hint: String(cause), cause });
  }
}
