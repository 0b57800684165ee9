import { closeSync, fstatSync, lstatSync, openSync, readFileSync, type Stats, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { ThroughlineError, unreadable } from '../core/errors.ts';
import { checkText } from '../core/input/arguments.ts';
import {
  parseSettings,
  parseSettingsOfFile,
  parseStoreAddress,
  type Settings,
  withoutPassword,
} from '../core/input/settings.ts';
import { dataHome, LONGEST_PATH } from './data-home.ts';

const NAME = 'throughline.config.json';

/** The data home, its settings, and the directory `base` that paths in the settings are relative to. */
export interface Setup {
  readonly home: string;
  readonly settings: Settings;
  readonly base: string;
  /** The file that they were read from; null: none. */
  readonly file: string | null;
  readonly store: StoreAddress;
}

/** Where conversations are kept. `url` may have a password: it is in no message and no log. */
export type StoreAddress =
  | { readonly kind: 'sqlite'; readonly file: string }
  | { readonly kind: 'postgres'; readonly url: string };

export interface SetupOptions {
  /** Where the data is kept; left out: $THROUGHLINE_HOME, else the XDG data directory. */
  readonly home?: string | undefined;
  /** A settings file; left out: $THROUGHLINE_CONFIG, else throughline.config.json here, else in the data home. */
  readonly config?: string | undefined;
  /** Settings as a value, instead of any file. */
  readonly settings?: unknown;
  /**
   * Where conversations are kept: `sqlite:PATH` or `postgres://USER@HOST/DATABASE`. Left out: $THROUGHLINE_STORE unless `settings` is
   * given, else as the settings say.
   */
  readonly store?: string | undefined;
}

export function readSetup({ home: given, config, settings, store }: SetupOptions): Setup {
  const home = dataHome(given);
  if (config !== undefined) checkText(config, 'settings file', LONGEST_PATH);
  if (config !== undefined && settings !== undefined)
    throw new ThroughlineError('refused', '"config" cannot be used together with "settings".', {
      hint: '"config" names a file, "settings" is the value itself. Leave one of them out.',
    });
  const read =
    settings === undefined
      ? readSettings(home, config)
      : { settings: parseSettings(settings), base: process.cwd(), file: null };
  const named = store ?? (settings === undefined ? process.env.THROUGHLINE_STORE || undefined : undefined);
  return { home, ...read, store: storeAt(home, read, named, store === undefined ? 'THROUGHLINE_STORE' : 'store') };
}

type Read = Omit<Setup, 'home' | 'store'>;

/** `named`: an address that was given outside of the settings; `name`: where, for errors. */
function storeAt(home: string, { settings, base }: Read, named: string | undefined, name: string): StoreAddress {
  const address = named === undefined ? settings.store : parseStoreAddress(named, name);
  if (address === undefined) return { kind: 'sqlite', file: join(home, 'throughline.db') };
  const [, path] = /^sqlite:(.+)$/s.exec(address) ?? [];
  if (path === undefined) return { kind: 'postgres', url: address };
  return { kind: 'sqlite', file: resolve(named === undefined ? base : process.cwd(), path) };
}

/** A store that is named without settings: `sqlite:FILE`, a data home, or `postgres://…`. `name`: the argument, for errors. */
export function namedStore(address: string, name: string): StoreAddress & { readonly home?: string } {
  if (/^postgres(ql)?:\/\//.test(address)) return { kind: 'postgres', url: address };
  const [, file] = /^sqlite:(.+)$/s.exec(address) ?? [];
  if (file !== undefined) return { kind: 'sqlite', file: resolve(file) };
  // The message does not repeat the address: it may contain a password.
  if (address === '' || /^[a-z0-9+]+:/i.test(address) || statSync(address, { throwIfNoEntry: false })?.isFile()) {
    throw new ThroughlineError(
      'invalid',
      `${name} must be "sqlite:FILE", a data home, or "postgres://USER@HOST/DATABASE".`,
    );
  }
  return { kind: 'sqlite', file: join(resolve(address), 'throughline.db'), home: resolve(address) };
}

/** For people: without user and password. */
export function storeInWords(store: StoreAddress): string {
  if (store.kind === 'sqlite') return store.file;
  const { host, pathname } = new URL(store.url);
  return `postgres://${host}${pathname}`;
}

/** How a command names it: without a password. */
export function storeAddress(store: StoreAddress): string {
  return store.kind === 'sqlite' ? `sqlite:${store.file}` : withoutPassword(store.url);
}

/** The file of the database. Throws `refused` when the conversations are in PostgreSQL. */
export function storeFile({ store }: Setup): string {
  if (store.kind === 'sqlite') return store.file;
  throw new ThroughlineError('refused', 'Throughline makes and restores no backups of a PostgreSQL database.', {
    hint: 'Use the tools of PostgreSQL: pg_dump and pg_restore, or pg_basebackup. See docs/deploy.md.',
  });
}

/** The settings of a data home, and the directory that paths in them are relative to. Without a file: all defaults. */
function readSettings(home: string, named?: string): Read {
  const required = named ?? process.env.THROUGHLINE_CONFIG;
  for (const candidate of required ? [required] : [NAME, join(home, NAME)]) {
    const file = resolve(candidate);
    const text = read(file, Boolean(required), !required && candidate === NAME);
    if (text === null) continue;
    const value = parseJson(text, file);
    try {
      return { settings: parseSettingsOfFile(value), base: resolve(file, '..'), file };
    } catch (error) {
      throw inFile(file, error);
    }
  }
  return { settings: parseSettings({}), base: home, file: null };
}

/** The error, with the file that the wrong setting is in; null: it is in none. */
export function inFile<E>(file: string | null, error: E): E | ThroughlineError {
  if (file === null || !(error instanceof ThroughlineError) || error.code !== 'invalid') return error;
  const hint = `The settings file is ${file}. ${error.hint ?? ''}`.trimEnd();
  return new ThroughlineError('invalid', error.message, { hint, cause: error });
}

/** `mustBeOurs`: nobody named the file; it was found. Null: it is not required, and not there. */
function read(file: string, required: boolean, mustBeOurs: boolean): string | null {
  try {
    if (mustBeOurs) checkOurs(file, lstatSync(file));
    const handle = openSync(file, 'r');
    try {
      if (mustBeOurs) checkOurs(file, fstatSync(handle));
      return readFileSync(handle, 'utf8');
    } finally {
      closeSync(handle);
    }
  } catch (cause) {
    if (cause instanceof ThroughlineError) throw cause;
    const { code } = cause as NodeJS.ErrnoException;
    if (!required && code === 'ENOENT') return null;
    throw new ThroughlineError('invalid', unreadable('settings file', file, code), {
      hint: 'Name an existing file with --config or THROUGHLINE_CONFIG, or leave both out.',
      cause,
    });
  }
}

/** Settings name programs that run as our user. The working directory may be one where every user can put a file, such as /tmp. */
function checkOurs(file: string, found: Stats): void {
  const user = process.getuid?.();
  if (user === undefined) return;
  const isOurs = found.uid === user || found.uid === 0;
  if (isOurs && (found.isSymbolicLink() || (found.mode & 0o002) === 0)) return;
  const who = isOurs
    ? `Every user can change the settings file ${file}, and name`
    : `The settings file ${file} belongs to another user, who can name`;
  throw new ThroughlineError('refused', `${who} programs in it that run as you.`, {
    hint: 'If you trust what is in it, name it with --config or THROUGHLINE_CONFIG. Otherwise work in another directory.',
  });
}

function parseJson(text: string, file: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new ThroughlineError('invalid', `The settings file ${file} is not valid JSON: ${(cause as Error).message}.`, {
      cause,
    });
  }
}
