import { ThroughlineError } from '../../../core/errors.ts';
import { Collision } from '../../shared/verbs/steps.ts';

/*
 * Faults of PostgreSQL, by its codes. The texts are ours, and the cause is the code alone: a text of the server may contain stored values, or the address
 * with its password.
 */
type Fault = Pick<ThroughlineError, 'code' | 'message'> & { readonly hint: string };

const FULL: Fault = {
  code: 'storage_full',
  message: 'The disk of the database server is full.',
  hint: 'Nothing was stored. Free some space there, and try again.',
};
const READONLY: Fault = {
  code: 'storage_readonly',
  message: 'The database server only allows reading: it is a replica, or is configured so.',
  hint: 'Give the address of the primary server.',
};
const NO_RIGHTS: Fault = {
  code: 'storage_readonly',
  message: 'The database user may not create or write the tables of Throughline.',
  hint: 'Make it the owner of a database of its own: CREATE DATABASE throughline OWNER that_user.',
};
const BUSY: Fault = {
  code: 'storage_busy',
  message: 'The database was too busy to answer in time.',
  hint: 'Try again. If it happens again, look for sessions that wait in pg_stat_activity.',
};
const LOCKED: Fault = {
  code: 'storage_busy',
  message: 'Another process has locked the rows to be changed.',
  hint: 'Try again. If it happens again, look for sessions that wait for a lock in pg_stat_activity.',
};
const CROWDED: Fault = {
  code: 'storage_busy',
  message: 'The database server has no free connection.',
  hint: 'Raise max_connections there (11 for each server of Throughline), or end what uses them: see pg_stat_activity.',
};
const NO_MEMORY: Fault = {
  code: 'storage_busy',
  message: 'The database server has run out of memory.',
  hint: 'Give it more, or lower work_mem and max_connections there.',
};
const DAMAGED: Fault = {
  code: 'storage_damaged',
  message: 'A part of the database is damaged: PostgreSQL cannot read it.',
  hint: 'The log of PostgreSQL says which. Restore a backup of the database; see docs/deploy.md.',
};
const GONE: Fault = {
  code: 'storage_busy',
  message: 'The database server does not answer.',
  hint: 'The next request tries again. Check that the server runs and can be reached.',
};
const LOGIN: Fault = {
  code: 'unreachable',
  message: 'The database server refused the login: wrong user or password.',
  hint: 'Check the user in the address of the store, and the password in PGPASSWORD, ~/.pgpass or THROUGHLINE_STORE.',
};
const NO_PASSWORD: Fault = {
  code: 'unreachable',
  message: 'The database server demands a password, and there is none.',
  hint: 'Set PGPASSWORD, or write a line HOST:PORT:DATABASE:USER:PASSWORD into ~/.pgpass, which only you may read.',
};
const NO_RULE: Fault = {
  code: 'unreachable',
  message:
    'The database server refused the login: it has no such user, no rule for it (pg_hba.conf), or it demands TLS.',
  hint: 'Check the user in the address of the store. If the server demands TLS, add "?sslmode=verify-full" to the address.',
};
const NO_TLS: Fault = {
  code: 'unreachable',
  message: 'The address of the store demands TLS (sslmode), and the database server does not offer it.',
  hint: 'Switch TLS on in the server (ssl = on). Over a socket of this machine there is none: leave out sslmode.',
};
const NO_TRUST: Fault = {
  code: 'unreachable',
  message: 'The certificate of the database server is not trusted, or is not for this host.',
  hint: 'Name its certificate authority with "&sslrootcert=FILE" in the address of the store, and the host as the certificate does.',
};
const NO_DATABASE: Fault = {
  code: 'unreachable',
  message: 'There is no such database on the server.',
  hint: 'Create it: CREATE DATABASE name ENCODING UTF8.',
};
const INTERNAL: Fault = {
  code: 'storage_damaged',
  message: 'PostgreSQL reports an internal error: a part of the database may be damaged.',
  hint: 'The log of PostgreSQL says more. If a part is damaged, restore a backup of the database; see docs/deploy.md.',
};

const CODES: Readonly<Record<string, Fault>> = {
  '53100': FULL,
  '25006': READONLY,
  '25P03': GONE,
  '42501': NO_RIGHTS,
  '53200': NO_MEMORY,
  '53300': CROWDED,
  '53400': BUSY,
  '55P03': LOCKED,
  '57014': BUSY,
  '58030': DAMAGED, // a file could not be read or written
  '58P01': DAMAGED, // a file is missing
  XX000: INTERNAL,
  XX001: DAMAGED, // a page
  XX002: DAMAGED, // an index
  '40001': BUSY,
  '40P01': BUSY,
  '57P01': GONE,
  '57P02': GONE,
  '57P03': GONE,
  '28000': NO_RULE,
  '28P01': LOGIN,
  '3D000': NO_DATABASE,
  ECONNREFUSED: GONE,
  ECONNRESET: GONE,
  ECONNABORTED: GONE,
  EHOSTUNREACH: GONE,
  ENETDOWN: GONE,
  ENETUNREACH: GONE,
  EPIPE: GONE,
  ETIMEDOUT: GONE,
  ENOTFOUND: GONE,
  EAI_AGAIN: GONE,
  ENOENT: GONE,
};

/** Errors of the driver itself, which have no code. */
const LOST =
  /^(Connection terminated|Query read timeout|timeout exceeded|Client has encountered|Client was closed|timeout expired)/;
const PASSWORD_MISSING = /^SASL: SCRAM-SERVER-FIRST-MESSAGE: client password/;
const TLS_REFUSED = /^The server does not support SSL connections/;
/** What Node finds wrong with a certificate. */
const CERTIFICATE = /^(ERR_TLS_CERT|CERT_|DEPTH_ZERO_SELF_SIGNED|SELF_SIGNED_CERT|UNABLE_TO_(GET_ISSUER|VERIFY))/;

/** The error for the caller; null: not a fault of the storage, usually a bug. */
export function storageFault(error: unknown): ThroughlineError | null {
  // A row was read, but its JSON is damaged. The store parses nothing else.
  if (error instanceof SyntaxError) return damaged();
  const code = codeOf(error);
  const known = CODES[code] ?? faultOf(code, messageOf(error));
  if (known === undefined) return null;
  // The cause is only the code: the server's message may repeat parts of an address or of a statement.
  return new ThroughlineError(known.code, known.message, {
    hint: known.hint,
    cause: new Error(code || 'connection lost'),
  });
}

function faultOf(code: string, message: string): Fault | undefined {
  if (CERTIFICATE.test(code)) return NO_TRUST;
  if (TLS_REFUSED.test(message)) return NO_TLS;
  if (PASSWORD_MISSING.test(message)) return NO_PASSWORD;
  return code.startsWith('08') || LOST.test(message) ? GONE : undefined;
}

/** Without a cause: causes are logged, and a SyntaxError quotes stored values. */
function damaged(): ThroughlineError {
  return new ThroughlineError('storage_damaged', 'A part of the database is damaged: a row is not JSON.', {
    hint: 'Restore a backup of the database.',
  });
}

/** For faults while the store is opened. Then we do not wait for a server that does not answer. */
export function openFault(error: unknown): ThroughlineError {
  if (error instanceof ThroughlineError) return error;
  const fault = storageFault(error);
  if (fault === null) {
    const code = codeOf(error);
    const says = code === '' ? '' : ` The server or its driver says: ${code}.`;
    return new ThroughlineError('unreachable', 'The PostgreSQL store cannot be opened.', {
      hint: `Check its address: postgres://USER@HOST:5432/DATABASE, with the password in PGPASSWORD or ~/.pgpass.${says}`,
    });
  }
  if (fault.message !== GONE.message) return fault;
  return new ThroughlineError('unreachable', fault.message, {
    hint: 'Check that it runs, and that host and port in the address of the store are right.',
    cause: fault.cause,
  });
}

function codeOf(error: unknown): string {
  const { code } = (error ?? {}) as { code?: unknown };
  if (typeof code === 'string') return code;
  // Several addresses of one host were tried.
  return error instanceof AggregateError ? codeOf(error.errors[0]) : '';
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : '';
}

/** Two transactions conflicted. The transaction is run again. */
export function isCollision(error: unknown): boolean {
  return error instanceof Collision || ['40001', '40P01', '23503'].includes(codeOf(error));
}

/** Another transaction held a lock for longer than we wait. */
export function isLockedOut(fault: ThroughlineError): boolean {
  return fault.message === LOCKED.message;
}

/** The server has ended a statement that took longer than we allowed. */
export function isEnded(error: unknown): boolean {
  return codeOf(error) === '57014';
}

/** The server does not support this kind of statement. */
export function isUnknown(error: unknown): boolean {
  return codeOf(error) === '42601';
}

export type LongRead = 'search' | 'check';

export function tooSlow(what: LongRead, ms: number): ThroughlineError {
  const hint =
    what === 'search'
      ? 'Search for fewer turns: with rarer words, or more of them.'
      : 'Try again. If it happens again, look in pg_stat_activity for what keeps the server busy.';
  return new ThroughlineError('too_large', `The ${what} took longer than ${ms / 1_000} s and was ended.`, { hint });
}

/** The name of the unique index that was violated; null: none was. */
export function violated(error: unknown): string | null {
  return codeOf(error) === '23505' ? ((error as { constraint?: string }).constraint ?? '') : null;
}
