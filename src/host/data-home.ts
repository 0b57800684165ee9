import { homedir, userInfo } from 'node:os';
import { isAbsolute, join } from 'node:path';
import { ThroughlineError } from '../core/errors.ts';

/** Where the data lives when nobody says otherwise. */
export function dataHome(): string {
  const { THROUGHLINE_HOME, XDG_DATA_HOME } = process.env;
  if (THROUGHLINE_HOME) return THROUGHLINE_HOME;
  if (XDG_DATA_HOME && isAbsolute(XDG_DATA_HOME)) return join(XDG_DATA_HOME, 'throughline');
  return join(userHome(), '.local', 'share', 'throughline');
}

function userHome(): string {
  try {
    // With HOME set to nothing, as some services are started, the data would lie wherever each of them happens to be.
    return homedir() || userInfo().homedir;
  } catch (cause) {
    // In a container, a user may be a number and nothing else.
    const hint = 'Say where the data is to live: --home, or THROUGHLINE_HOME.';
    throw new ThroughlineError('refused', 'This user has no home directory.', { hint, cause });
  }
}
