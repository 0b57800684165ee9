import type { Permission } from 'throughline/client';
import { isObject } from '../../../src/core/turn/content.ts';
import { shellWord } from '../ui/shell-word.ts';

/** What an agent asks for, taken apart for a person: nothing of it is left out. */
export interface Asked {
  /** What the agent calls it: `edit`, `execute`; null: it does not say. */
  readonly kind: string | null;
  /** The tool, where its name is not the title. */
  readonly tool: string | null;
  /** Paths and addresses that it is about. */
  readonly targets: readonly string[];
  /** The command line that would run; null: it is none. */
  readonly command: string | null;
  readonly diffs: readonly AskedDiff[];
  /** What the agent says about it in words. */
  readonly texts: readonly string[];
  /** The rest of what the tool would be given, as JSON; null: nothing else. */
  readonly input: string | null;
}

export interface AskedDiff {
  readonly path: string;
  /** Null: the file is new. */
  readonly before: string | null;
  readonly after: string;
}

export function askedOf({ title, toolCall }: Pick<Permission, 'title' | 'toolCall'>): Asked {
  const call = isObject(toolCall) ? toolCall : {};
  const input = isObject(call.rawInput) ? call.rawInput : {};
  const content = Array.isArray(call.content) ? call.content.filter(isObject) : [];
  const diffs = content.flatMap(diffOf);
  const { command, told } = commandOf(input);
  const rest = Object.entries(input).filter(([name]) => !told.includes(name));
  return {
    kind: textIn(call.kind),
    tool: textIn(call.title) === title ? null : textIn(call.title),
    targets: targetsOf(call, diffs),
    command,
    diffs,
    texts: content.flatMap(wordsOf),
    input: restOfInput(call.rawInput, rest),
  };
}

/** Agents name the command `command` or `cmd`, as a text or as a list of words. */
function commandOf(input: Record<string, unknown>): { command: string | null; told: readonly string[] } {
  for (const name of ['command', 'cmd']) {
    const value = input[name];
    if (typeof value === 'string') return { command: value, told: [name] };
    if (Array.isArray(value) && value.every((word) => typeof word === 'string')) {
      return { command: value.map(shellWord).join(' '), told: [name] };
    }
  }
  return { command: null, told: [] };
}

function restOfInput(raw: unknown, rest: readonly (readonly [string, unknown])[]): string | null {
  if (isObject(raw)) return rest.length === 0 ? null : JSON.stringify(Object.fromEntries(rest), null, 2);
  if (raw === undefined || raw === null) return null;
  return typeof raw === 'string' ? raw : JSON.stringify(raw, null, 2);
}

function targetsOf(call: Record<string, unknown>, diffs: readonly AskedDiff[]): string[] {
  const locations = Array.isArray(call.locations) ? call.locations.filter(isObject) : [];
  const paths = locations.flatMap(({ path, line }) => {
    if (typeof path !== 'string') return [];
    return [typeof line === 'number' ? `${path}:${line}` : path];
  });
  // A diff names its own file.
  return [...new Set(paths)].filter((path) => !diffs.some((diff) => diff.path === path));
}

function diffOf({ type, path, oldText, newText }: Record<string, unknown>): AskedDiff[] {
  if (type !== 'diff' || typeof path !== 'string' || typeof newText !== 'string') return [];
  return [{ path, before: typeof oldText === 'string' ? oldText : null, after: newText }];
}

function wordsOf({ type, content }: Record<string, unknown>): string[] {
  return type === 'content' && isObject(content) && typeof content.text === 'string' ? [content.text] : [];
}

function textIn(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value : null;
}

/** How a question ended, in a sentence; null: it is open. */
export function outcomeOf({ state, options, optionId, answeredBy, reason }: Permission): string | null {
  if (state === 'open') return null;
  if (state === 'denied') return `Denied: ${reason ?? 'nobody answered'}.`;
  if (state === 'withdrawn') return `Withdrawn: ${reason ?? 'its turn ended'}.`;
  const option = options.find((each) => each.optionId === optionId);
  return `Answered “${option?.name ?? optionId}”, by ${answeredBy ?? 'somebody'}.`;
}

/** A press that wants to answer: when it began, and whether a held key repeats it. Null: nothing was pressed (a screen reader). */
export interface Press {
  readonly at: number;
  readonly repeats: boolean;
}

/** A card that has just appeared, or moved, gets clicks and keys that were meant for what was there before. */
export const INERT_MS = 500;

export function mayAnswer(shownAt: number, press: Press | null, now: number): boolean {
  return !press?.repeats && (press?.at ?? now) - shownAt >= INERT_MS;
}
