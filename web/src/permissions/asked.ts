import type { Permission } from 'throughline/client';
import { isObject } from '../../../src/core/turn/content.ts';
import { type ReportedDiff, reportedDiff } from '../../../src/core/turn/reported-diff.ts';
import { shellWord } from '../ui/shell-word.ts';

/** What an agent asks for, in parts that a person can read. Together they are complete. */
export interface Asked {
  /** The agent's name for the kind of tool: `edit`, `execute`; null: it gives none. */
  readonly kind: string | null;
  /** The name of the tool; null: it gives none, or the title is the name. */
  readonly tool: string | null;
  /** Paths and addresses that it is about. */
  readonly targets: readonly string[];
  /** The command line that would run; null: the tool runs none. */
  readonly command: string | null;
  readonly diffs: readonly AskedDiff[];
  /** Explanations of the agent. */
  readonly texts: readonly string[];
  /** The other input of the tool, as JSON; null: there is none. */
  readonly input: string | null;
}

export type AskedDiff = ReportedDiff;

export function askedOf({ title, toolCall }: Pick<Permission, 'title' | 'toolCall'>): Asked {
  const call = isObject(toolCall) ? toolCall : {};
  const input = isObject(call.rawInput) ? call.rawInput : {};
  const content = Array.isArray(call.content) ? call.content.filter(isObject) : [];
  const diffs = content.flatMap((item) => reportedDiff(item) ?? []);
  const [field, command] = commandOf(input);
  const isShown = (value: unknown) => isIn(diffs, value);
  const rest = Object.entries(input).filter(([name, value]) => name !== field && !isShown(value));
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

/** Everything of it that a person reads. */
export function markableTexts({ tool, targets, command, diffs, texts, input }: Asked): string[] {
  const changed = diffs.flatMap(({ path, newText }) => [path, newText]);
  return [tool, ...targets, command, ...changed, ...texts, input].filter((text) => text !== null);
}

/** The command and the field that it is in: `command` or `cmd`, as a text or as a list of words. */
function commandOf(input: Record<string, unknown>): readonly [string | null, string | null] {
  for (const name of ['command', 'cmd']) {
    const value = input[name];
    if (typeof value === 'string') return [name, value];
    if (Array.isArray(value) && value.every((word) => typeof word === 'string')) {
      return [name, value.map(shellWord).join(' ')];
    }
  }
  return [null, null];
}

/** Whether all of a value is in the diffs, so that it need not be shown again as JSON. What is off says nothing beside a diff. */
function isIn(diffs: readonly AskedDiff[], value: unknown): boolean {
  if (value === false || value === null) return diffs.length > 0;
  if (typeof value === 'string') {
    return diffs.some(({ path, oldText, newText }) => [path, oldText, newText].includes(value));
  }
  return isObject(value) || Array.isArray(value) ? Object.values(value).every((each) => isIn(diffs, each)) : false;
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

function wordsOf({ type, content }: Record<string, unknown>): string[] {
  return type === 'content' && isObject(content) && typeof content.text === 'string' ? [content.text] : [];
}

function textIn(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value : null;
}

/** What the agent asks, as a question: “May Claude Code run this command?”; null: only its own title says it. */
export function headlineOf({ kind, command, diffs, targets }: Asked, agent: string): string | null {
  if (command !== null) return `May ${agent} run this command?`;
  const isNew = diffs.length > 0 && diffs.every(({ oldText, lines }) => oldText === null && lines !== null);
  const verb = isNew ? 'create' : diffs.length > 0 ? 'change' : VERBS[kind ?? ''];
  const files = new Set([...diffs.map(({ path }) => path), ...targets]).size;
  if (verb === undefined || files === 0) return null;
  const what = verb === 'open' ? 'address' : 'file';
  return `May ${agent} ${verb} ${files === 1 ? `this ${what}` : `these ${files} ${what}${what === 'file' ? 's' : 'es'}`}?`;
}

const VERBS: Readonly<Record<string, string>> = {
  edit: 'change',
  delete: 'delete',
  move: 'move',
  read: 'read',
  fetch: 'open',
};

/** A press of a pointer or a key: when it began, and whether a held key repeats it or it belongs to a text that is typed. */
export interface Press {
  readonly at: number;
  readonly repeats: boolean;
}

/** A card that has just appeared or moved ignores clicks and keys: they may be meant for what was there before. */
export const INERT_MS = 500;

/** `press`: null if nothing was pressed (a screen reader). */
export function mayAnswer(shownAt: number, press: Press | null, now: number): boolean {
  return !press?.repeats && (press?.at ?? now) - shownAt >= INERT_MS;
}
