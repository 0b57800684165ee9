import { ThroughlineError } from '../errors.ts';
import { shown } from '../input/arguments.ts';
import { asTitle } from '../input/names.ts';
import { inSeconds } from '../limits/time-limits.ts';
import { isObject } from './content.ts';
import { byteLength, leftOutMark, shorten } from './shorten.ts';

/*
 * A permission is a question that an agent asks in the middle of a turn.
 *
 *   open ──▶ answered    the first answer wins
 *        ──▶ denied      nobody could answer, or nobody did in time; the agent gets a refusal
 *        ──▶ withdrawn   its attempt ended before anybody answered
 */
export const PERMISSION_STATES = ['open', 'answered', 'denied', 'withdrawn'] as const;
export type PermissionState = (typeof PERMISSION_STATES)[number];

export type PermissionKind = 'allow_once' | 'allow_always' | 'reject_once' | 'reject_always';

/**
 * One of the answers that an agent offers to its question.
 *
 * @example
 * import type { OnPermission } from 'throughline';
 *
 * const always: OnPermission = ({ options }) => options.find(({ kind }) => kind === 'allow_always')?.optionId ?? 'allow';
 */
export interface PermissionOption {
  readonly optionId: string;
  readonly name: string;
  readonly kind: PermissionKind;
}

/** From where a question is answered. `program`: a function of a program, such as `onPermission`. */
export const ANSWERED_FROM = ['page', 'phone', 'command_line', 'program'] as const;
export type AnsweredFrom = (typeof ANSWERED_FROM)[number];

/** Throws `invalid`. */
export function checkAnsweredFrom(value: unknown): AnsweredFrom | null {
  if (value === undefined) return null;
  const known = ANSWERED_FROM.find((one) => one === value);
  if (known !== undefined) return known;
  throw new ThroughlineError('invalid', `"from" must be one of ${ANSWERED_FROM.join(', ')}, not ${shown(value)}.`);
}

/** The fields of a question that are shown as they are stored. */
export interface ShownPermission {
  readonly id: string;
  readonly attempt: number;
  readonly title: string;
  /** What the agent wants to do, as the agent sent it (an ACP tool call). */
  readonly toolCall: unknown;
  readonly options: readonly PermissionOption[];
  readonly state: PermissionState;
  /** The option chosen; null: not answered. */
  readonly optionId: string | null;
  /** Who answered; null: not answered. */
  readonly answeredBy: string | null;
  /** From where, as the one who answered has told; null: not told, or not answered. */
  readonly answeredFrom: AnsweredFrom | null;
  /** Why it was denied or withdrawn; null: it was not. */
  readonly reason: string | null;
  readonly askedAt: number;
  readonly endedAt: number | null;
}

export interface Permission extends ShownPermission {
  readonly conversation: string;
  readonly turn: string;
}

/**
 * A question of a turn that was denied because nobody answered it.
 *
 * @example
 * const { denied } = await chat.ask('Tidy up.', { permissions: 'deny' });
 * for (const { title, reason } of denied) console.log(title, reason);
 */
export interface Denial {
  readonly permissionId: string;
  readonly title: string;
  readonly reason: string;
}

export function denialsIn(permissions: readonly Permission[]): Denial[] {
  return permissions.flatMap(({ id, title, state, reason }) =>
    state === 'denied' ? [{ permissionId: id, title, reason: reason ?? NOBODY_THERE }] : [],
  );
}

export const NOBODY_THERE = 'nobody can answer here';

/**
 * How many questions of a turn may be open at once; a further one is denied. Agents ask a handful at once, for tools that run in
 * parallel. A hundred is one page of the list of permissions: more than a person answers.
 */
export const MOST_OPEN_QUESTIONS = 100;
export const TOO_MANY_OPEN = `${MOST_OPEN_QUESTIONS} questions of its turn are open already`;

export function nobodyAnswered(waitMs: number): string {
  return `nobody answered within ${inSeconds(waitMs / 1000)}`;
}

/** What to do so that the same question is not denied again. */
export function howToAllow(reason: string): string {
  if (reason.startsWith(UNANSWERABLE)) return 'Update the agent, or report this to its makers.';
  const without = 'Or let the agent do it without asking, in its own settings.';
  if (reason === TOO_MANY_OPEN) return `Answer the open questions, and send the prompt again. ${without}`;
  if (reason !== NOBODY_THERE) {
    return `Answer in time ("throughline permissions" lists open questions), or raise permissions.waitSeconds in the settings. ${without}`;
  }
  return (
    'Let somebody answer: onPermission in the library, permissions "ask" with the turn, --permissions ask on the command line. ' +
    without
  );
}

/** A question of an agent, as it is stored and shown. */
export interface AskedQuestion extends Pick<Permission, 'title' | 'toolCall' | 'options'> {
  /** Why nobody can answer it; null: it can be answered. */
  readonly fault: string | null;
}

const MOST_OPTIONS = 50;
const LONGEST_OPTION = 512;
const LONGEST_OPTION_NAME = 200;
/** In bytes. The updates of the turn have the whole tool call. */
const LONGEST_TITLE = 8_000;
const LONGEST_TOOL_CALL = 64_000;
const LONGEST_IN_TOOL_CALL = 2_000;

/**
 * Shortens a question so that a person can read it, and says why it cannot be answered, if so. An answer is the id of an option, so two
 * options must not have the same id; and a person who answers "no" must not choose an option that allows.
 */
export function askedQuestion({ title, toolCall, options }: Omit<AskedQuestion, 'fault'>): AskedQuestion {
  const fault = faultIn(options);
  return {
    title: shorten(title, LONGEST_TITLE),
    toolCall: shortToolCall(toolCall),
    options: options.slice(0, MOST_OPTIONS).map((option) => ({
      ...option,
      optionId: fault === null ? option.optionId : shorten(option.optionId, LONGEST_OPTION),
      name: asTitle(option.name, LONGEST_OPTION_NAME) || asTitle(option.optionId, LONGEST_OPTION_NAME),
    })),
    fault: fault === null ? null : `${UNANSWERABLE}${fault}`,
  };
}

const UNANSWERABLE = 'it cannot be answered: ';

function faultIn(options: readonly PermissionOption[]): string | null {
  if (options.length > MOST_OPTIONS) return `it has ${options.length} options, more than ${MOST_OPTIONS}`;
  const ids = new Set<string>();
  for (const { optionId, kind } of options) {
    if (optionId.trim() === '') return 'an option has an empty id';
    if (optionId.length > LONGEST_OPTION) return `the id of an option has more than ${LONGEST_OPTION} characters`;
    // White space around an answer does not count.
    if (ids.has(optionId.trim())) return `two of its options have the id ${shown(optionId)}`;
    ids.add(optionId.trim());
    const meant = meaningOf(optionId);
    if (meant !== null && !kind.startsWith(meant)) return `its option ${shown(optionId)} does the opposite`;
  }
  return null;
}

/** What a person means by a word such as "yes", whatever the options are called; null: any other word. */
export function meaningOf(word: string): 'allow' | 'reject' | null {
  const lower = word.trim().toLowerCase();
  if (['allow', 'yes', 'y'].includes(lower)) return 'allow';
  return ['deny', 'reject', 'no', 'n'].includes(lower) ? 'reject' : null;
}

/** A tool call whose long texts are cut. If it is still too large, only its id, title and kind. */
function shortToolCall(toolCall: unknown): unknown {
  const size = (value: unknown) => byteLength(JSON.stringify(value) ?? '');
  const bytes = size(toolCall);
  if (bytes <= LONGEST_TOOL_CALL) return toolCall;
  const short = withShortTexts(toolCall);
  if (size(short) <= LONGEST_TOOL_CALL) return short;
  const { toolCallId, title, kind } = isObject(short) ? short : {};
  const named = Object.entries({ toolCallId, title, kind }).filter(([, value]) => typeof value === 'string');
  return { ...Object.fromEntries(named), rawInput: leftOutMark(bytes) };
}

function withShortTexts(value: unknown): unknown {
  if (typeof value === 'string') return shorten(value, LONGEST_IN_TOOL_CALL);
  if (Array.isArray(value)) return value.map(withShortTexts);
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, withShortTexts(inner)]));
}

/** The option that means yes, once rather than always, to grant no more than was asked. Null: the agent offered none. */
export function allowOption(options: readonly PermissionOption[]): PermissionOption | null {
  return options.find((o) => o.kind === 'allow_once') ?? options.find((o) => o.kind === 'allow_always') ?? null;
}

/** The option that means no; null: the agent offered none, and the question is cancelled instead. */
export function denyOption(options: readonly PermissionOption[]): PermissionOption | null {
  return options.find((o) => o.kind === 'reject_once') ?? options.find((o) => o.kind === 'reject_always') ?? null;
}
