import { ERROR_CODES, ThroughlineError } from './errors.ts';
import { shown } from './input/arguments.ts';
import { asTitle, checkName } from './input/names.ts';
import { sizeOf } from './input/size.ts';
import { wellFormed } from './input/well-formed.ts';
import type { PublicSession } from './public/session.ts';
import { parseRestore, type RestoreOverride } from './restore/restore-settings.ts';
import { SESSION_ORIGINS } from './restore/session.ts';
import { isObject, parseSaid } from './turn/content.ts';
import type { TurnRecord } from './turn/record.ts';
import { isRecordedDiff } from './turn/reported-diff.ts';
import { TURN_ENDS } from './turn/turn.ts';
import { NO_USAGE, OPTIONAL_COUNTS } from './turn/usage.ts';

export const EXPORT_FORMAT = 'throughline.conversation';
export const EXPORT_VERSION = 1;

/** Limits for turn numbers, times and ids: what exceeds them was not written by an export. */
const MOST_TURNS = 2 ** 31 - 1;
const LAST_TIME = 8.64e15;
const LONGEST_ID = 4_096;
/** The largest turn that can be imported, in bytes of JSON: it is stored in one step. */
export const MOST_OF_TURN = 12 * 1_048_576;

/**
 * A conversation as one JSON value: what `export` writes and `import` reads.
 *
 * @example
 * import type { ExportedConversation } from 'throughline';
 *
 * const exported: ExportedConversation = await chat.export();
 * await tl.import(exported, { key: 'a copy' });
 */
export interface ExportedConversation {
  readonly format: typeof EXPORT_FORMAT;
  readonly version: typeof EXPORT_VERSION;
  readonly conversation: {
    readonly key: string | null;
    readonly title: string;
    readonly agent: string | null;
    readonly restore: RestoreOverride;
  };
  readonly records: readonly TurnRecord[];
  /** `parent` is the agent's id of the session it came from; null: none. */
  readonly sessions: readonly Pick<PublicSession, 'id' | 'agent' | 'origin' | 'parent' | 'watermark'>[];
}

/** Checks a value that came from outside, and names the first fault. Throws `invalid`. One step for each record: an export can be very long. */
export function* exportSteps(input: unknown): Generator<undefined, ExportedConversation> {
  if (!isObject(input) || input.format !== EXPORT_FORMAT) throw fault(`the value has no "format": "${EXPORT_FORMAT}"`);
  if (input.version !== EXPORT_VERSION) {
    throw fault(`it has version ${shown(input.version)}, and this program reads version ${EXPORT_VERSION}`);
  }
  const conversation = parseConversation(input.conversation);
  if (!Array.isArray(input.records)) throw fault('"records" must be a list');
  const records: unknown[] = [];
  let last = 0;
  for (const record of input.records) {
    last = checkRecord(record, last);
    if (sizeOf(record) > MOST_OF_TURN) throw tooLarge(last);
    // The caller cannot correct what agents said, so it is repaired. What persons said was checked above.
    records.push(wellFormed(record));
    yield;
  }
  if (!Array.isArray(input.sessions)) throw fault('"sessions" must be a list');
  for (const session of input.sessions) {
    checkSession(session, last);
    yield;
  }
  const rest = wellFormed({ ...input, conversation, records: [], sessions: [] });
  return { ...rest, records, sessions: input.sessions.map(wellFormed) } as unknown as ExportedConversation;
}

function tooLarge(n: number): ThroughlineError {
  const message = `Turn ${n} has more than ${MOST_OF_TURN / 1_048_576} MiB.`;
  return new ThroughlineError('too_large', message, { hint: 'Shorten what was said in it, and import it again.' });
}

function parseConversation(conversation: unknown): object {
  if (!isObject(conversation)) throw fault('"conversation" is missing');
  const { key, agent, title, restore } = conversation;
  if (key !== null && typeof key !== 'string') throw fault('"conversation.key" must be a text or null');
  if (key !== null) within('conversation.key', () => checkName(key, 'key'));
  if (agent !== null && !isId(agent)) throw fault('"conversation.agent" must be a text or null');
  if (typeof title !== 'string') throw fault('"conversation.title" must be a text');
  parseRestore(restore, 'conversation.restore');
  // The caller did not choose the title and cannot correct it, so it is shortened instead of refused.
  return { ...conversation, title: asTitle(title) };
}

function checkRecord(record: unknown, last: number): number {
  if (!isObject(record)) throw fault('a record is not an object');
  const n = record.n;
  if (typeof n !== 'number' || !Number.isSafeInteger(n) || n <= last || n > MOST_TURNS) {
    throw fault(
      `the record after turn ${last} has the number ${shown(n)}; numbers must rise, to ${MOST_TURNS} at most`,
    );
  }
  const at = `the record of turn ${n}`;
  if (record.version !== 1) throw fault(`${at} has an unknown version`);
  if (!isId(record.agent)) throw fault(`${at} names no agent`);
  if (!idOrNull(record.sessionId)) throw fault(`${at} has a session id that is neither a text nor null`);
  if (!(TURN_ENDS as readonly unknown[]).includes(record.outcome)) throw fault(`${at} has no known outcome`);
  if (record.failure !== null && !isFailure(record.failure)) throw fault(`${at} has a failure that cannot be read`);
  for (const name of ['startedAt', 'endedAt']) {
    if (!isAmount(record[name], LAST_TIME)) throw fault(`${at} has no time "${name}"`);
  }
  for (const name of ['recovered', 'unknownBefore']) {
    if (record[name] !== undefined && record[name] !== true) throw fault(`${at} needs true as "${name}", or nothing`);
  }
  checkUsage(record.usage, at);
  within(at, () => parseSaid(record.prompt));
  if (!Array.isArray(record.parts) || !Array.from(record.parts).every(isPart)) {
    throw fault(`${at} has a part that cannot be read`);
  }
  return n;
}

/** Runs another check, and adds to its error where in the file the fault is. */
function within(at: string, check: () => unknown): void {
  try {
    check();
  } catch (error) {
    if (!(error instanceof ThroughlineError)) throw error;
    throw fault(`${at}: ${error.message.replace(/\.$/, '')}`);
  }
}

function checkUsage(usage: unknown, at: string): void {
  if (!isObject(usage)) throw fault(`${at} has no usage`);
  for (const name of Object.keys(NO_USAGE)) {
    // These are added up: a text among them would be concatenated.
    if (!isAmount(usage[name], Number.MAX_SAFE_INTEGER)) throw fault(`${at} has no usage "${name}"`);
  }
  for (const name of OPTIONAL_COUNTS) {
    if (usage[name] === undefined || isAmount(usage[name], Number.MAX_SAFE_INTEGER)) continue;
    throw fault(`${at} has a usage "${name}" that is no number`);
  }
}

function isFailure(failure: unknown): boolean {
  if (!isObject(failure) || typeof failure.message !== 'string') return false;
  if (failure.hint !== undefined && typeof failure.hint !== 'string') return false;
  return (ERROR_CODES as readonly unknown[]).includes(failure.code);
}

function isPart(part: unknown): boolean {
  if (!isObject(part)) return false;
  if (part.type === 'text' || part.type === 'thought') return typeof part.text === 'string';
  if (part.type !== 'tool') return false;
  const texts = typeof part.id === 'string' && typeof part.name === 'string' && typeof part.kind === 'string';
  const known = part.status === 'completed' || part.status === 'failed' || part.status === 'unknown';
  const timed = part.ms === undefined || (Number.isSafeInteger(part.ms) && isAmount(part.ms, LAST_TIME));
  const changed = part.diffs === undefined || (Array.isArray(part.diffs) && part.diffs.every(isRecordedDiff));
  return texts && known && timed && changed && textOrNull(part.target) && textOrNull(part.output);
}

function checkSession(session: unknown, head: number): void {
  if (!isObject(session) || !isId(session.id) || !isId(session.agent)) {
    throw fault('a session has no id or no agent');
  }
  const at = `the session ${session.id}`;
  if (!(SESSION_ORIGINS as readonly unknown[]).includes(session.origin)) throw fault(`${at} has no known origin`);
  if (!idOrNull(session.parent)) throw fault(`${at} has a parent that is neither a text nor null`);
  if (!Number.isSafeInteger(session.watermark) || !isAmount(session.watermark, head)) {
    throw fault(`${at} has the watermark ${shown(session.watermark)}; it must be the number of a turn up to ${head}`);
  }
}

/** The name of an agent or session: any text, but of limited length. */
function isId(value: unknown): value is string {
  return typeof value === 'string' && value !== '' && value.length <= LONGEST_ID && value.isWellFormed();
}

function idOrNull(value: unknown): boolean {
  return value === null || isId(value);
}

function isAmount(value: unknown, most: number): boolean {
  return typeof value === 'number' && value >= 0 && value <= most;
}

function textOrNull(value: unknown): boolean {
  return value === null || typeof value === 'string';
}

function fault(what: string): ThroughlineError {
  return new ThroughlineError('invalid', `This is not a conversation that can be imported: ${what}.`, {
    hint: 'Import what "throughline export" wrote, or a list of messages [{"role": …, "content": …}, …].',
  });
}
