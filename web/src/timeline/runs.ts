import type { RecordPart } from 'throughline/client';
import type { ToolPart } from '../../../src/core/turn/record.ts';
import { factOf } from './tool-facts.ts';
import { type Doing, doingOf } from './tool-kinds.ts';

type Text = Extract<RecordPart, { readonly type: 'text' }>;
export type Thought = Extract<RecordPart, { readonly type: 'thought' }>;

/** What is said or done in a turn, as the timeline shows it: a text or a thought alone, or a run of tools. */
export type Piece = { readonly kind: 'part'; readonly key: string; readonly part: Text | Thought } | Run;

/** Tools without a text between them, and the thoughts around them: one line, that opens to rows. */
export interface Run {
  readonly kind: 'run';
  readonly key: string;
  readonly steps: readonly (ToolPart | Thought)[];
}

/** Groups what is said and done. The key of a piece stays the same while more parts come. */
export function piecesOf(parts: readonly RecordPart[]): Piece[] {
  const pieces: Piece[] = [];
  let steps: (ToolPart | Thought)[] = [];
  for (const [at, part] of parts.entries()) {
    if (part.type === 'text') pieces.push({ kind: 'part', key: String(at), part });
    else steps.push(part);
    const next = parts[at + 1];
    if (steps.length === 0 || (next !== undefined && next.type !== 'text')) continue;
    pieces.push(grouped(steps, String(at + 1 - steps.length)));
    steps = [];
  }
  return pieces;
}

function grouped(steps: Run['steps'], key: string): Piece {
  const [first] = steps;
  if (first?.type === 'thought' && steps.length === 1) return { kind: 'part', key, part: first };
  return { kind: 'run', key, steps };
}

interface Words {
  /** How many: `1 file read`. */
  readonly one: string;
  readonly many: string;
  /** `1 command failed`, `2 commands failed`. */
  readonly failed: readonly [string, string];
  /** In its row, and while it goes on. */
  readonly did: string;
  readonly does: string;
}

export const WORDS: Readonly<Record<Doing, Words>> = {
  read: { one: 'file read', many: 'files read', failed: ['read', 'reads'], did: 'Read', does: 'Reading' },
  search: { one: 'search', many: 'searches', failed: ['search', 'searches'], did: 'Searched', does: 'Searching' },
  change: {
    one: 'file changed',
    many: 'files changed',
    failed: ['change', 'changes'],
    did: 'Changed',
    does: 'Changing',
  },
  command: { one: 'command', many: 'commands', failed: ['command', 'commands'], did: 'Ran', does: 'Running' },
  fetch: { one: 'page fetched', many: 'pages fetched', failed: ['fetch', 'fetches'], did: 'Fetched', does: 'Fetching' },
  helper: {
    one: 'subagent',
    many: 'subagents',
    failed: ['subagent', 'subagents'],
    did: 'Delegated',
    does: 'Delegating',
  },
  plan: { one: 'plan', many: 'plans', failed: ['plan', 'plans'], did: 'Planned', does: 'Planning' },
  other: { one: 'other tool', many: 'other tools', failed: ['tool', 'tools'], did: 'Used', does: 'Using' },
};

/** In this order in the line. */
const ORDER: readonly Doing[] = ['change', 'read', 'search', 'command', 'fetch', 'helper', 'plan', 'other'];
const LOOKING: ReadonlySet<Doing> = new Set(['read', 'search', 'command', 'fetch']);

export interface RunWords {
  /** `Looked around: `, or nothing. */
  readonly lead: string;
  /** `9 files read, 3 searches`; empty: all have failed, or go on. */
  readonly did: string;
  /** `1 command failed`; empty: none. */
  readonly failed: string;
  /** What it does now; null: nothing. */
  readonly now: ToolPart | null;
  /** How many ended without a reported outcome. */
  readonly unknown: number;
  /** The lines added and removed; null: no file was changed. */
  readonly lines: { readonly added: number; readonly removed: number } | null;
  /** Null: not known. */
  readonly ms: number | null;
}

/** The line of a run. `isRunning`: its turn is running, so that a tool without an outcome is at work. */
export function wordsOf(steps: Run['steps'], isRunning: boolean): RunWords {
  const tools = steps.filter((step) => step.type === 'tool');
  const ended = tools.filter(({ status }) => status !== 'unknown');
  const open = tools.filter(({ status }) => status === 'unknown');
  const done = isRunning ? ended.filter(isDone) : tools.filter(({ status }) => status !== 'failed');
  const failed = tools.filter(({ status }) => status === 'failed');
  const kinds = new Set(done.map(doingOf));
  const onlyLooked = failed.length === 0 && (kinds.has('read') || kinds.has('search')) && kinds.isSubsetOf(LOOKING);
  return {
    lead: onlyLooked && (!isRunning || open.length === 0) ? 'Looked around: ' : '',
    did: counted(done, (doing, count) => `${count} ${count === 1 ? WORDS[doing].one : WORDS[doing].many}`),
    failed: counted(failed, (doing, count) => `${count} ${WORDS[doing].failed[count === 1 ? 0 : 1]} failed`),
    now: isRunning ? (open.at(-1) ?? null) : null,
    unknown: isRunning ? 0 : open.length,
    lines: linesOf(tools),
    ms: timeOf(tools),
  };
}

const isDone = ({ status }: ToolPart) => status === 'completed';

/** A file that was read or changed twice counts once. */
function counted(tools: readonly ToolPart[], words: (doing: Doing, count: number) => string): string {
  return ORDER.flatMap((doing) => {
    const same = tools.filter((tool) => doingOf(tool) === doing);
    if (same.length === 0) return [];
    const isOfFiles = doing === 'read' || doing === 'change';
    const count = isOfFiles ? new Set(same.map(({ id, target }) => target ?? id)).size : same.length;
    return [words(doing, count)];
  }).join(', ');
}

function linesOf(tools: readonly ToolPart[]): RunWords['lines'] {
  const changes = tools.flatMap((tool) => factOf(tool).lines ?? []);
  if (changes.length === 0) return null;
  return {
    added: changes.reduce((sum, { added }) => sum + added, 0),
    removed: changes.reduce((sum, { removed }) => sum + removed, 0),
  };
}

function timeOf(tools: readonly ToolPart[]): number | null {
  const known = tools.flatMap(({ ms }) => ms ?? []);
  return known.length === 0 ? null : known.reduce((sum, ms) => sum + ms, 0);
}

/** Whether a run is open at first: a command that failed shows its end. */
export function hasFailedCommand(steps: Run['steps']): boolean {
  return steps.some((step) => step.type === 'tool' && step.status === 'failed' && doingOf(step) === 'command');
}
