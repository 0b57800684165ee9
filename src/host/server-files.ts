import { randomBytes } from 'node:crypto';
import {
  chmodSync,
  closeSync,
  constants,
  fstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
} from 'node:fs';
import { join } from 'node:path';
import { createDirectories } from '../core/directories.ts';
import { ThroughlineError, writeFault } from '../core/errors.ts';
import type { ProcessIdentity } from '../core/process.ts';
import { makeOnce, replaceWhole } from './whole-file.ts';

/** The system truncates or refuses longer paths of unix sockets. */
const LONGEST_SOCKET = 103;

/** The files that clients need of the server of a data home, in a directory that only its user can read. */
export interface ServerFiles {
  readonly directory: string;
  readonly token: string;
  /** Locked by the server while it runs. */
  readonly lock: string;
  /** Null: the path of the data home is too long for a socket; then there is only TCP. */
  readonly socket: string | null;
  /** The address of the running server, as JSON: `{ url, socket, process }`. */
  readonly address: string;
}

export interface ServerAddress {
  readonly url: string;
  readonly socket: string | null;
  readonly process: ProcessIdentity;
}

export function serverFiles(home: string): ServerFiles {
  const directory = join(home, 'server');
  const socket = join(directory, 'socket');
  return {
    directory,
    token: join(directory, 'token'),
    lock: join(directory, 'lock'),
    socket: Buffer.byteLength(socket) <= LONGEST_SOCKET ? socket : null,
    address: join(directory, 'address.json'),
  };
}

/** Creates the directory, and makes it private, also if it exists. */
export function makeServerDirectory({ directory }: ServerFiles): void {
  try {
    createDirectories(directory, { statSync, mkdirSync });
    chmodSync(directory, 0o700);
  } catch (cause) {
    const hint = `Remove the file that has its name, or make its parent writable, or set THROUGHLINE_HOME. (${(cause as Error).message})`;
    throw (
      writeFault(directory, cause) ??
      new ThroughlineError('storage_readonly', `Cannot create the directory ${directory}.`, { hint, cause })
    );
  }
}

/** The token of the data home. It is created once, complete or not at all. Throws `refused` when it cannot be created. */
export function tokenOf(files: ServerFiles): string {
  const known = readToken(files);
  if (known !== null) return known;
  orRefuse(files.token, () => makeOnce(files.token, `${randomBytes(32).toString('base64url')}\n`));
  const made = readToken(files);
  if (made === null) throw new Error('The token was removed while it was created.');
  return made;
}

/** Null: no server has run here yet. Throws `refused` when another user could have read or planted it. */
export function readToken({ token }: ServerFiles): string | null {
  const text = readPrivate(token);
  if (text === null) return null;
  if (/^[A-Za-z0-9_-]{43}\n$/.test(text)) return text.trim();
  throw unsafe(token, 'does not contain a token');
}

/** Null: no server has written its address. The server may have ended since. */
export function readAddress({ address }: ServerFiles): ServerAddress | null {
  const text = readPrivate(address);
  return text === null ? null : (JSON.parse(text) as ServerAddress);
}

/** Throws `refused` when the file cannot be written. */
export function writeAddress({ address }: ServerFiles, value: ServerAddress): void {
  orRefuse(address, () => replaceWhole(address, `${JSON.stringify(value)}\n`));
}

function orRefuse(file: string, write: () => void): void {
  try {
    write();
  } catch (cause) {
    const hint = `Remove the directory that has its name, or free some space, and start again. (${(cause as Error).message})`;
    throw new ThroughlineError('refused', `Cannot write ${file}.`, { hint, cause });
  }
}

/** For a server that ends normally. */
export function removeAddress({ address }: ServerFiles): void {
  rmSync(address, { force: true });
}

/** Follows no link, and reads only a file of our user that no other user can read. */
function readPrivate(file: string): string | null {
  let handle: number;
  try {
    handle = openSync(file, constants.O_RDONLY | constants.O_NOFOLLOW);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR') return null;
    if (code === 'ELOOP') throw unsafe(file, 'is a link');
    throw error;
  }
  try {
    const { mode, uid } = fstatSync(handle);
    if ((mode & 0o077) !== 0) throw unsafe(file, 'can be read by other users');
    if (process.getuid !== undefined && uid !== process.getuid()) throw unsafe(file, 'belongs to another user');
    return readFileSync(handle, 'utf8');
  } finally {
    closeSync(handle);
  }
}

function unsafe(file: string, what: string): ThroughlineError {
  return new ThroughlineError('refused', `The file ${file} ${what}, so it cannot be trusted.`, {
    hint: 'Remove it; the server creates a new one when it starts.',
  });
}
