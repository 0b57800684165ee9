import { closeSync, openSync, readSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { CST, type Document, isMap, isNode, isScalar, Lexer, LineCounter, parseDocument, visit } from 'yaml';
import { asSentence, ThroughlineError, unreadable } from '../core/errors.ts';
import type { Locate, PlanPath } from '../core/tasks/task-plan.ts';

/** A plan read from a file, not yet checked. */
interface TaskFile {
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
  checkSize(text, name);
  // The library compares every key with every other, which is slow: `doubleKey` looks for them instead.
  const options = { lineCounter: lines, prettyErrors: false, uniqueKeys: false };
  const document = parsed(name, () => parseDocument(text, options));
  const [fault] = [...document.errors, ...document.warnings];
  const wrong =
    fault === undefined
      ? parsed(name, () => doubleKey(document))
      : { offset: fault.pos[0], message: STACK_FULL.test(fault.message) ? 'It is nested too deep' : fault.message };
  if (wrong !== null) {
    const { line } = lines.linePos(wrong.offset);
    throw new ThroughlineError('invalid', `${name}, line ${line}: ${asSentence(wrong.message)}`, {
      hint: 'A task file is YAML or JSON; docs/tasks.md has an example.',
    });
  }
  const locate: Locate = (at) => {
    const offset = offsetOf(document, at);
    return offset === null ? `${name}: ` : `${name}, line ${lines.linePos(offset).line}: `;
  };
  return { plan: parsed(name, () => document.toJS({ maxAliasCount: 100 })), locate };
}

/** How the library reports nested brackets that overflow the call stack. */
const STACK_FULL = /call stack/;

/** More than the largest plan needs: 1,000 tasks with every field. */
const MOST_TOKENS = 150_000;
const MOST_ALIASES = 100;
const MOST_QUOTED_LINES = 5_000;

/** The library needs seconds and much memory to parse some small files. Counting their tokens first takes a fraction of that. */
function checkSize(text: string, name: string): void {
  let [tokens, aliases, quotedLines] = [0, 0, 0];
  for (const token of new Lexer().lex(text)) {
    tokens += 1;
    const type = CST.tokenType(token);
    if (type === 'alias' || type === 'anchor') aliases += 1;
    else if (type === 'double-quoted-scalar' || type === 'single-quoted-scalar')
      quotedLines += token.split('\n').length - 1;
    if (tokens > MOST_TOKENS) throw tooLarge(name, `${MOST_TOKENS} parts`, 'Split it into several files.');
    if (aliases > MOST_ALIASES) throw tooLarge(name, `${MOST_ALIASES} anchors and aliases`, 'Write the values out.');
    if (quotedLines > MOST_QUOTED_LINES)
      throw tooLarge(
        name,
        `${MOST_QUOTED_LINES} lines in quotes`,
        'Write long texts as a block: "goal: |", and indented lines.',
      );
  }
}

function tooLarge(name: string, what: string, hint: string): ThroughlineError {
  return new ThroughlineError('too_large', `The task file ${name} has more than ${what}.`, { hint });
}

function doubleKey(document: Document): { readonly offset: number; readonly message: string } | null {
  let found: number | null = null;
  visit(document, {
    Map: (_, { items }) => {
      const keys = new Set<unknown>();
      for (const { key } of items) {
        if (!isScalar(key)) continue;
        if (keys.has(key.value)) {
          found = key.range?.[0] ?? 0;
          return visit.BREAK;
        }
        keys.add(key.value);
      }
      return undefined;
    },
  });
  return found === null ? null : { offset: found, message: 'Map keys must be unique' };
}

/** The library throws for aliases that multiply or form a cycle, and for very deep nesting. */
function parsed<T>(name: string, read: () => T): T {
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

/** The same limit as that of a server. The file may be a device or a pipe that never ends, so its size is not asked for. */
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
    throw new ThroughlineError('invalid', unreadable('task file', file, code), { cause });
  }
  if (length <= MOST_BYTES) return bytes.toString('utf8', 0, length);
  throw tooLarge(file, `${MOST_BYTES} bytes`, 'Split it into several files.');
}
