import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { ThroughlineError } from '../core/errors.ts';
import { parseSettings, type Settings } from '../core/input/settings.ts';
import { dataHome } from './data-home.ts';

const NAME = 'throughline.config.json';

/** The data home, its settings, and the directory `base` that paths in the settings are relative to. */
export interface Setup {
  readonly home: string;
  readonly settings: Settings;
  readonly base: string;
  /** The file that they were read from; null: none. */
  readonly file: string | null;
}

export interface SetupOptions {
  /** Where the data is kept; left out: $THROUGHLINE_HOME, else the XDG data directory. */
  readonly home?: string;
  /** A settings file; left out: $THROUGHLINE_CONFIG, else throughline.config.json here, else in the data home. */
  readonly config?: string;
  /** Settings as a value, instead of any file. */
  readonly settings?: unknown;
}

export function readSetup({ home: given, config, settings }: SetupOptions): Setup {
  const home = resolve(given ?? dataHome());
  if (settings !== undefined) return { home, settings: parseSettings(settings), base: process.cwd(), file: null };
  return { home, ...readSettings(home, config) };
}

/** Where the database is. */
export function storeFile({ settings, base, home }: Setup): string {
  const address = settings.store ?? `sqlite:${join(home, 'throughline.db')}`;
  const [, kind, path] = /^([a-z]+):(.+)$/.exec(address) ?? [];
  if (kind !== 'sqlite' || path === undefined) {
    throw new ThroughlineError('invalid', `Unknown store "${address}".`, { hint: 'Write "sqlite:PATH".' });
  }
  return resolve(base, path);
}

/** The settings of a data home, and the directory that paths in them are relative to. Without a file: all defaults. */
function readSettings(home: string, named?: string): Omit<Setup, 'home'> {
  const required = named ?? process.env.THROUGHLINE_CONFIG;
  for (const candidate of required ? [required] : [NAME, join(home, NAME)]) {
    const file = resolve(candidate);
    const text = read(file, Boolean(required));
    if (text !== null) return { settings: parseSettings(parseJson(text, file)), base: resolve(file, '..'), file };
  }
  return { settings: parseSettings({}), base: home, file: null };
}

function read(file: string, required: boolean): string | null {
  try {
    return readFileSync(file, 'utf8');
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    if (!required && code === 'ENOENT') return null;
    throw new ThroughlineError('invalid', `Cannot read the settings file ${file} (${code}).`, {
      hint: 'Name an existing file with --config or THROUGHLINE_CONFIG, or leave both out.',
      cause,
    });
  }
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
