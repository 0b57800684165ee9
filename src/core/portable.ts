import { isObject, parsePrompt } from './content.ts';
import { ERROR_CODES, ThroughlineError } from './errors.ts';
import type { TurnRecord } from './record.ts';
import { parseRestore, type RestoreSettings } from './restore-settings.ts';
import { SESSION_ORIGINS, type SessionOrigin } from './session.ts';
import { shown } from './shown.ts';
import { TURN_ENDS } from './turn.ts';
import { NO_USAGE } from './usage.ts';

export const EXPORT_FORMAT = 'throughline.conversation';
export const EXPORT_VERSION = 1;

/** A conversation as one JSON value: what `export` writes and `import` reads. */
export interface ExportedConversation {
  readonly format: typeof EXPORT_FORMAT;
  readonly version: typeof EXPORT_VERSION;
  readonly conversation: {
    readonly key: string | null;
    readonly title: string;
    readonly agent: string | null;
    readonly restore: RestoreSettings;
  };
  readonly records: readonly TurnRecord[];
  readonly sessions: readonly ExportedSession[];
}

export interface ExportedSession {
  readonly id: string;
  readonly agent: string;
  readonly origin: SessionOrigin;
  /** The agent's id of the session it came from; null: none. */
  readonly parent: string | null;
  readonly watermark: number;
}

/** Checks a value that came from outside, and names the first fault. Throws `invalid`. */
export function parseExport(input: unknown): ExportedConversation {
  if (!isObject(input) || input.format !== EXPORT_FORMAT) throw fault(`the value has no "format": "${EXPORT_FORMAT}"`);
  if (input.version !== EXPORT_VERSION) {
    throw fault(`it has version ${shown(input.version)}, and this program reads version ${EXPORT_VERSION}`);
  }
  const conversation = input.conversation;
  if (!isObject(conversation)) throw fault('"conversation" is missing');
  for (const name of ['key', 'agent']) {
    const value = conversation[name];
    if (value !== null && typeof value !== 'string') throw fault(`"conversation.${name}" must be a text or null`);
  }
  if (typeof conversation.title !== 'string') throw fault('"conversation.title" must be a text');
  parseRestore(conversation.restore, 'conversation.restore');
  if (!Array.isArray(input.records)) throw fault('"records" must be a list');
  let last = 0;
  for (const record of input.records) last = checkRecord(record, last);
  if (!Array.isArray(input.sessions)) throw fault('"sessions" must be a list');
  for (const session of input.sessions) checkSession(session);
  return input as unknown as ExportedConversation;
}

function checkRecord(record: unknown, last: number): number {
  if (!isObject(record)) throw fault('a record is not an object');
  const n = record.n;
  if (typeof n !== 'number' || !Number.isSafeInteger(n) || n <= last) {
    throw fault(`the record after turn ${last} has the number ${shown(n)}; numbers must rise`);
  }
  const at = `the record of turn ${n}`;
  if (record.version !== 1) throw fault(`${at} has an unknown version`);
  if (typeof record.agent !== 'string') throw fault(`${at} names no agent`);
  if (!textOrNull(record.sessionId)) throw fault(`${at} has a session id that is neither a text nor null`);
  if (!(TURN_ENDS as readonly unknown[]).includes(record.outcome)) throw fault(`${at} has no known outcome`);
  if (record.failure !== null && !isFailure(record.failure)) throw fault(`${at} has a failure that cannot be read`);
  for (const name of ['startedAt', 'endedAt']) {
    if (!Number.isFinite(record[name])) throw fault(`${at} has no time "${name}"`);
  }
  checkUsage(record.usage, at);
  checkPrompt(record.prompt, at);
  if (!Array.isArray(record.parts) || !Array.from(record.parts).every(isPart)) {
    throw fault(`${at} has a part that cannot be read`);
  }
  return n;
}

function checkPrompt(prompt: unknown, at: string): void {
  try {
    parsePrompt(prompt);
  } catch (error) {
    if (!(error instanceof ThroughlineError)) throw error;
    throw fault(`${at}: ${error.message.replace(/\.$/, '')}`);
  }
}

function checkUsage(usage: unknown, at: string): void {
  if (!isObject(usage)) throw fault(`${at} has no usage`);
  for (const name of Object.keys(NO_USAGE)) {
    const amount = usage[name];
    // Sums are made of these: a text among them would be glued on instead of added.
    if (!Number.isFinite(amount) || (amount as number) < 0) throw fault(`${at} has no usage "${name}"`);
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
  return texts && known && textOrNull(part.target) && textOrNull(part.output);
}

function checkSession(session: unknown): void {
  if (!isObject(session) || typeof session.id !== 'string' || typeof session.agent !== 'string') {
    throw fault('a session has no id or no agent');
  }
  const at = `the session ${session.id}`;
  if (!(SESSION_ORIGINS as readonly unknown[]).includes(session.origin)) throw fault(`${at} has no known origin`);
  if (!textOrNull(session.parent)) throw fault(`${at} has a parent that is neither a text nor null`);
  if (!Number.isSafeInteger(session.watermark) || (session.watermark as number) < 0) {
    throw fault(`${at} has the watermark ${shown(session.watermark)}; it must be a whole number`);
  }
}

function textOrNull(value: unknown): boolean {
  return value === null || typeof value === 'string';
}

function fault(what: string): ThroughlineError {
  return new ThroughlineError('invalid', `This is not a conversation that can be imported: ${what}.`, {
    hint: 'Import what "throughline export" wrote.',
  });
}
