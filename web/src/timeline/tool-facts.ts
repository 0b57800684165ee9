import { isObject } from '../../../src/core/turn/content.ts';
import type { ToolPart } from '../../../src/core/turn/record.ts';
import { isShortened } from '../../../src/core/turn/shorten.ts';
import { changedLines } from '../diff/tool-changes.ts';
import { doingOf } from './tool-kinds.ts';

/** What the row of a tool says at its right. Only what was reported: nothing is guessed from an output that was shortened. */
export interface ToolFact {
  /** `lines 1–120`, `7 hits in 4 files`; null: nothing is known. */
  readonly words: string | null;
  /** Null: the agent did not say. */
  readonly exit: number | null;
  /** The lines added and removed; null: it changed none. */
  readonly lines: { readonly added: number; readonly removed: number } | null;
}

const NO_FACT: ToolFact = { words: null, exit: null, lines: null };

/** A tool is the same object until something about it changes, and its run is rendered with every word of the answer. */
const known = new WeakMap<ToolPart, ToolFact>();

export function factOf(tool: ToolPart): ToolFact {
  const fact = known.get(tool) ?? readFact(tool);
  known.set(tool, fact);
  return fact;
}

function readFact(tool: ToolPart): ToolFact {
  const output = tool.output ?? '';
  const lines = changedLines(tool);
  switch (doingOf(tool)) {
    case 'read':
      return { ...NO_FACT, lines, words: tool.status === 'failed' ? null : rangeOf(tool.input, output) };
    case 'search':
      return { ...NO_FACT, lines, words: tool.status === 'failed' ? null : hitsIn(output) };
    case 'command':
      return { ...NO_FACT, lines, exit: tool.status === 'failed' ? exitIn(output) : null };
    default:
      return { ...NO_FACT, lines };
  }
}

/** A line as `cat -n` numbers it. */
const NUMBERED = /^\s*(\d+)(?:→|\t)/;

/** The lines that were read: as the agent asked for them, or as the output numbers them. */
function rangeOf(input: unknown, output: string): string | null {
  const { offset, limit, line } = isObject(input) ? input : {};
  const from = typeof offset === 'number' ? offset : typeof line === 'number' ? line : null;
  const numbers = isShortened(output) ? [] : output.split('\n').flatMap((text) => NUMBERED.exec(text)?.[1] ?? []);
  const [first, last] = [Number(numbers.at(0)), Number(numbers.at(-1))];
  if (numbers.length > 0) return first === 1 && from === null ? `all ${last} lines` : `lines ${first}–${last}`;
  if (typeof limit !== 'number') return from === null || from <= 1 ? null : `from line ${from}`;
  const start = Math.max(from ?? 1, 1);
  return `lines ${start}–${start + limit - 1}`;
}

/** A hit as `grep -n` prints it. */
const HIT = /^([^:\n]+):\d+:/;

function hitsIn(output: string): string | null {
  if (/^No (matches|files) found/.test(output)) return 'no hits';
  const [, files] = /^Found (\d+) files?\b/.exec(output) ?? [];
  if (files !== undefined) return plural(Number(files), 'file');
  const lines = output.split('\n').filter((line) => line.trim() !== '');
  const paths = lines.flatMap((line) => HIT.exec(line)?.[1] ?? []);
  if (paths.length === 0 || paths.length !== lines.length) return null;
  return `${plural(paths.length, 'hit')} in ${plural(new Set(paths).size, 'file')}`;
}

const plural = (count: number, word: string) => `${count} ${word}${count === 1 ? '' : 's'}`;

/** As Claude writes it before what a command printed, or as agents report it when it printed nothing. */
const EXIT = /^(?:Error: )?Exit code (\d+)$|^\{"exit_?[cC]ode":(\d+)\b/m;

function exitIn(output: string): number | null {
  const [, written, reported] = EXIT.exec(output.slice(0, 200)) ?? [];
  const code = written ?? reported;
  return code === undefined ? null : Number(code);
}
