/**
 * The closed set of things that can go wrong by a caller's fault or by the state of the system.
 * A turn that goes wrong is not thrown: its failure is data (`Failure`) with one of the same codes.
 * Anything that is not a `ThroughlineError` is a bug.
 *
 * @example
 * import { ERROR_CODES } from 'throughline';
 *
 * const storage = ERROR_CODES.filter((code) => code.startsWith('storage_'));
 */
export const ERROR_CODES = [
  'invalid', // the request cannot be understood; nothing was stored
  'not_found', // no such thing, or not the caller's
  'conflict', // something else has this id, key or request id
  'log_changed', // the event to continue after is not in this log: data was lost, or restored from a backup
  'refused', // what the caller explicitly asked for cannot be done
  'agent_unavailable', // the agent's program is missing or does not start
  'signed_out', // the agent's sign-in is missing or has expired: a person has to sign in
  'agent_failed', // the agent reported an error
  'agent_died', // the agent's process ended in the middle of a turn
  'too_large', // more than can be sent or returned at once; ask for less, or in pages
  'too_many', // more at once than one owner may ask for; try again when the others have ended
  'too_long', // the agent refused the prompt as too long
  'restore_failed', // the context could not be restored as the policy demands
  'context_refuted', // after sending, the agent's own storage showed that it lacked the context
  'session_locked', // another program used the agent's session for longer than we wait
  'permission_denied', // a permission was denied and the agent gave up
  'timed_out', // the turn took longer than its limit
  'stalled', // the agent sent nothing for longer than the limit
  'over_budget', // a limit of spending per day is reached
  'cancelled', // a person or a program asked for it
  'interrupted', // the outcome is unknown: a process ended between sending and the end
  'lease_lost', // another worker owns the conversation now; this one writes nothing
  'storage_full', // the disk is full
  'storage_readonly', // the file or its directory cannot be written
  'storage_gone', // the data file was deleted, moved, replaced or cut while it was in use; what was asked for may be in it
  'storage_lost', // events that were stored are missing
  'storage_damaged', // the file is damaged, or is not a database
  'storage_newer', // written by a newer version of this program
  'storage_busy', // another process kept the database locked for too long
  'closed', // used after close()
  'unreachable', // the server does not answer, or is not a server of this program
  'internal', // a bug in this program; the log has its cause
] as const;

/**
 * One of `ERROR_CODES`.
 *
 * @example
 * import type { ErrorCode } from 'throughline';
 *
 * const TRY_LATER: readonly ErrorCode[] = ['storage_busy', 'too_many', 'unreachable'];
 */
export type ErrorCode = (typeof ERROR_CODES)[number];

/**
 * What went wrong with a turn, as data. `message` says what happened, `hint` what to do.
 *
 * @example
 * const [last] = (await chat.turns()).slice(-1);
 * if (last?.failure) console.error(last.failure.code, last.failure.message, last.failure.hint);
 */
export interface Failure {
  readonly code: ErrorCode;
  readonly message: string;
  readonly hint?: string;
}

/**
 * What a caller or the state of the system caused: a code, what happened (`message`), and what to do (`hint`).
 *
 * @example
 * import { ThroughlineError } from 'throughline';
 *
 * try {
 *   await chat.get();
 * } catch (error) {
 *   if (!(error instanceof ThroughlineError && error.code === 'not_found')) throw error;
 * }
 */
export class ThroughlineError extends Error {
  readonly code: ErrorCode;
  readonly hint: string | undefined;

  constructor(code: ErrorCode, message: string, options: { hint?: string | undefined; cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'ThroughlineError';
    this.code = code;
    this.hint = options.hint;
  }
}

/** Whether it is an error of ours with one of these codes. */
export function hasCode(error: unknown, ...codes: readonly ErrorCode[]): error is ThroughlineError {
  return error instanceof ThroughlineError && codes.includes(error.code);
}

export function noSuch(what: string, id: string, hint?: string): ThroughlineError {
  return new ThroughlineError('not_found', `There is no ${what} "${id}".`, { hint });
}

/** `isRefused`: whoever asks does not want a new one. */
export function noSuchConversation(idOrKey: string, { isRefused = false } = {}): ThroughlineError {
  const created = isRefused
    ? 'With "create": false, a prompt does not create one.'
    : 'The first prompt to a new key creates a conversation.';
  return noSuch('conversation', idOrKey, `See "throughline list". ${created}`);
}

export function noSuchTurn(id: string): ThroughlineError {
  return noSuch('turn', id, '"throughline show KEY" lists the turns of a conversation.');
}

export function noSuchTask(idOrName: string): ThroughlineError {
  return noSuch('task', idOrName, 'See "throughline task list".');
}

export function noSuchPlan(id: string): ThroughlineError {
  return noSuch('plan', id, '"throughline task show NAME" shows the plan of a task.');
}

/** For the id that a caller chose for a new session. */
export function issuesIds(agent: string): ThroughlineError {
  return new ThroughlineError('refused', `The agent "${agent}" issues the ids of its sessions itself.`, {
    hint: 'Leave out the id of the new session. The turn has the id that the agent issued.',
  });
}

export function noSuchPermission(id: string): ThroughlineError {
  return noSuch('permission', id, 'See "throughline permissions".');
}

/** Said by whatever process runs the agents. A command that asks a server does not read the settings where it runs. */
const OF_SERVER = ' (a server reads its settings when it starts, and a command that uses it does not read its own)';

export function noSuchAgent(name: string, known: Iterable<string>): ThroughlineError {
  return new ThroughlineError('agent_unavailable', `There is no agent "${name}" here.`, {
    hint: `Available: ${[...known].join(', ') || 'none'} (see "throughline agents"). Add one in throughline.config.json${OF_SERVER}, or with "throughline agents install NAME".`,
  });
}

/** The agent without a model, which is used only when somebody names it. */
export const SCRIPTED = 'scripted';

/** Neither the caller nor the settings name an agent. `known`: the agents that could be named; left out: any. */
export function noAgentGiven(known?: readonly string[]): ThroughlineError {
  if (known === undefined || known.some((name) => name !== SCRIPTED)) {
    return new ThroughlineError('invalid', 'No agent is given, and there is no default agent.', {
      hint: known === undefined ? 'Name an agent.' : `Name one of: ${known.join(', ')}.`,
    });
  }
  return new ThroughlineError('agent_unavailable', 'No agent is installed here.', {
    hint:
      `Run "throughline agents install claude", or add an agent in throughline.config.json${OF_SERVER}. ` +
      `To try Throughline without a model, name the test agent "${SCRIPTED}" (--agent ${SCRIPTED}).`,
  });
}

/** For a file or directory of the data that cannot be written because its disk is full or read-only; null: `cause` is something else. */
export function writeFault(path: string, cause: unknown): ThroughlineError | null {
  const { code } = cause as { code?: unknown };
  if (code === 'ENOSPC' || code === 'EDQUOT') {
    const hint = 'Free some space there, and try again.';
    return new ThroughlineError('storage_full', `The disk of ${path} is full.`, { hint, cause });
  }
  if (code !== 'EROFS') return null;
  const hint = 'Mount it writable, or keep the data elsewhere: --home, or THROUGHLINE_HOME.';
  return new ThroughlineError('storage_readonly', `The file system of ${path} is read-only.`, { hint, cause });
}

/** What to do about damaged data. */
export const RESTORE_HINT = 'Restore a backup with "throughline restore FILE"; see docs/backup.md.';

/** What to do in a browser whose page is from another version than the server: a page brings its own client. The page recognises it. */
export const RELOAD_HINT =
  'Reload the page. If that does not help, the page and the server have to be updated to the same version.';

/** A thrown `ThroughlineError` as data. */
export function failureOf(error: ThroughlineError): Failure {
  const { code, message, hint } = error;
  return { code, message, ...(hint !== undefined && { hint }) };
}

/** A failure as an error that can be thrown. */
export function errorOf({ code, message, hint }: Failure): ThroughlineError {
  return new ThroughlineError(code, message, { hint });
}

/** The server became unreachable after it had accepted a turn. The turn is stored. `fate`: what happens to it next. */
export function unreachableTurn(
  lost: ThroughlineError,
  { n, conversationId }: { readonly n: number; readonly conversationId: string },
  fate?: string,
): ThroughlineError {
  const next = fate ?? 'It runs, or its end is recorded, when a server or a program of its data home starts.';
  return new ThroughlineError('unreachable', `${lost.message} Turn ${n} was accepted and is stored.`, {
    hint: `${next} "throughline show ${conversationId}" shows it.`,
    cause: lost,
  });
}

/** Ends a text of an agent or the system with a full stop, so that a hint can follow. */
export function asSentence(text: string): string {
  const words = text.trim();
  return /[.!?…]$/.test(words) ? words : `${words}.`;
}

/** Why a file cannot be read. `what`: what it is, as "task file"; `code`: of the operating system. */
export function unreadable(what: string, path: string, code: string | undefined): string {
  return code === 'ENOENT' ? `The ${what} ${path} does not exist.` : `Cannot read the ${what} ${path} (${code}).`;
}

/** Makes a part of a sentence its beginning. */
export function upperFirst(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

const TRANSIENT: readonly ErrorCode[] = ['storage_full', 'storage_busy', 'storage_readonly', 'storage_gone'];

/** The storage cannot be written now, and may be later: a full disk gets space, a lock is released. */
export function isTransientFault(error: unknown): error is ThroughlineError {
  return hasCode(error, ...TRANSIENT);
}

/** A part of the storage cannot be read, and waiting does not repair it. */
export function isDamage(error: unknown): error is ThroughlineError {
  return hasCode(error, 'storage_damaged');
}

/** The data file is no longer where it was opened. Reading again fails until it is put back or the program restarts. */
export function isGone(error: unknown): error is ThroughlineError {
  return hasCode(error, 'storage_gone');
}

/** The rows of one conversation or task, which is known, are damaged. */
export class DamagedRows extends ThroughlineError {
  readonly id: string;

  constructor(id: string, { message, hint, cause }: ThroughlineError) {
    super('storage_damaged', message, { hint, cause });
    this.id = id;
  }
}

/** The same error, with a hint for somebody who waits: accepted turns continue by themselves when its cause is gone. */
export function whileWaiting({ code, message, hint, cause }: ThroughlineError): ThroughlineError {
  return new ThroughlineError(code, message, {
    hint: CONTINUES[code] ?? hint ?? 'Work continues by itself when the cause is gone.',
    cause,
  });
}

const CONTINUES: Partial<Record<ErrorCode, string>> = {
  storage_full: 'Free some space; work then continues by itself.',
  storage_readonly:
    'Make the data file and its directory, or the database, writable for this user; work then continues by itself.',
  storage_busy:
    'Work continues by itself when the database answers or its lock is released. If that takes long, find the program that keeps the lock.',
  storage_damaged: 'Throughline tries again from time to time. "throughline doctor" says what is damaged.',
};

/** Not a bug of this program: the storage fails, it was closed, or another worker has the lease. */
export function isStorageFault(error: unknown): boolean {
  return (
    error instanceof ThroughlineError &&
    (error.code.startsWith('storage_') || error.code === 'closed' || error.code === 'lease_lost')
  );
}
