/**
 * The closed set of things that can go wrong by a caller's fault or by the state of the system.
 * A turn that goes wrong is not thrown: its failure is data (`Failure`) with one of the same codes.
 * Anything that is not a `ThroughlineError` is a bug.
 */
export const ERROR_CODES = [
  'invalid', // the request cannot be understood; nothing was stored
  'not_found', // no such thing, or not the caller's
  'conflict', // the id, key or request id is taken by something else
  'refused', // what the caller set explicitly cannot be honoured
  'agent_unavailable', // the agent's program is missing or does not start
  'agent_failed', // the agent reported an error
  'agent_died', // the agent's process ended in the middle of a turn
  'too_large', // more than can be sent or given at once; ask for less, or in pages
  'too_long', // the agent refused the prompt as too long
  'restore_failed', // the context could not be restored as the policy demands
  'context_refuted', // after sending, the agent's own storage showed that it lacked the context
  'session_locked', // somebody else held the agent's session longer than we wait
  'permission_denied', // a permission was denied and the agent gave up
  'cancelled', // a person or a program asked for it
  'interrupted', // the outcome is unknown: a process ended between sending and the end
  'lease_lost', // another worker owns the conversation now; this one writes nothing
  'storage_full', // no room on the disk
  'storage_readonly', // the file or its directory cannot be written
  'storage_damaged', // not a database, or a damaged one
  'storage_newer', // written by a newer version of this program
  'storage_busy', // another process kept the database locked for too long
  'closed', // used after close()
  'unreachable', // the server that was to do it does not answer, or is no server of this program
  'internal', // a fault of this program; the log has its cause
] as const;

export type ErrorCode = (typeof ERROR_CODES)[number];

/** What went wrong with a turn, as data. `message` says what happened, `hint` what to do. */
export interface Failure {
  readonly code: ErrorCode;
  readonly message: string;
  readonly hint?: string;
}

export class ThroughlineError extends Error {
  readonly code: ErrorCode;
  readonly hint: string | undefined;

  constructor(code: ErrorCode, message: string, options: { hint?: string; cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'ThroughlineError';
    this.code = code;
    this.hint = options.hint;
  }
}

export function noSuch(what: string, id: string, hint?: string): ThroughlineError {
  return new ThroughlineError('not_found', `There is no ${what} "${id}".`, hint === undefined ? {} : { hint });
}

export function noSuchConversation(idOrKey: string): ThroughlineError {
  return noSuch('conversation', idOrKey, 'See "throughline list".');
}

export function noSuchTurn(id: string): ThroughlineError {
  return noSuch('turn', id, '"throughline show KEY" has the turns of a conversation.');
}

export function noSuchTask(idOrName: string): ThroughlineError {
  return noSuch('task', idOrName, 'See "throughline task list".');
}

export function noSuchPermission(id: string): ThroughlineError {
  return noSuch('permission', id, 'See "throughline permissions".');
}

export function noSuchAgent(name: string, known: Iterable<string>): ThroughlineError {
  return new ThroughlineError('agent_unavailable', `No agent is called "${name}" here.`, {
    hint: `Known are: ${[...known].join(', ') || 'none'}. See "throughline agents"; others are set in throughline.config.json, or brought by "throughline agents install".`,
  });
}

/** The failure that a thrown `ThroughlineError` amounts to. */
export function failureOf(error: ThroughlineError): Failure {
  return error.hint === undefined
    ? { code: error.code, message: error.message }
    : { code: error.code, message: error.message, hint: error.hint };
}

/** What an agent or the system says, as a sentence: a hint may follow it. */
export function asSentence(text: string): string {
  const words = text.trim();
  return /[.!?…]$/.test(words) ? words : `${words}.`;
}

const TRANSIENT: readonly ErrorCode[] = ['storage_full', 'storage_busy', 'storage_readonly'];

/** The storage takes nothing just now, and may later: a full disk gets space, a lock is released. */
export function isTransientFault(error: unknown): error is ThroughlineError {
  return error instanceof ThroughlineError && TRANSIENT.includes(error.code);
}

/** Not a bug of this program: the storage refuses, it was closed, or the lease is another's. */
export function isStorageFault(error: unknown): boolean {
  return (
    error instanceof ThroughlineError &&
    (error.code.startsWith('storage_') || error.code === 'closed' || error.code === 'lease_lost')
  );
}
