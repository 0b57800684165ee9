import { mkdirSync, statSync } from 'node:fs';
import { homedir, userInfo } from 'node:os';
import { dirname, isAbsolute, join } from 'node:path';
import { ThroughlineError } from '../core/errors.ts';

/** Where the data is kept unless the caller names another place. */
export function dataHome(): string {
  const { THROUGHLINE_HOME, XDG_DATA_HOME } = process.env;
  if (THROUGHLINE_HOME) return THROUGHLINE_HOME;
  if (XDG_DATA_HOME && isAbsolute(XDG_DATA_HOME)) return join(XDG_DATA_HOME, 'throughline');
  return join(userHome(), '.local', 'share', 'throughline');
}

function userHome(): string {
  try {
    // Some services start with an empty HOME. The data must not end up in whatever directory they run in.
    return homedir() || userInfo().homedir;
  } catch (cause) {
    // In a container, a user may be a number and nothing else.
    const hint = 'Say where to keep the data: with --home, or in THROUGHLINE_HOME.';
    throw new ThroughlineError('refused', 'This user has no home directory.', { hint, cause });
  }
}

/** Creates the data home, for this user alone. Throws `storage_readonly`. */
export function createHome(home: string): void {
  try {
    createDirectories(home);
  } catch (cause) {
    throw new ThroughlineError('storage_readonly', `Cannot create the data home ${home}.`, {
      hint: 'Set THROUGHLINE_HOME to a directory that you can write to.',
      cause,
    });
  }
}

/** One directory after the other: Node's own recursive mkdir loops for ever below one that accepts no entries, such as /proc. */
function createDirectories(path: string): void {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found?.isDirectory()) return;
  if (found === undefined && dirname(path) !== path) createDirectories(dirname(path));
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    // Another process may have created it in between.
    if (!statSync(path, { throwIfNoEntry: false })?.isDirectory()) throw error;
  }
}
