import { homedir } from 'node:os';
import { isAbsolute, join } from 'node:path';

/** Where the data lives when nobody says otherwise. */
export function dataHome(): string {
  const { THROUGHLINE_HOME, XDG_DATA_HOME } = process.env;
  if (THROUGHLINE_HOME) return THROUGHLINE_HOME;
  return join(
    XDG_DATA_HOME && isAbsolute(XDG_DATA_HOME) ? XDG_DATA_HOME : join(homedir(), '.local', 'share'),
    'throughline',
  );
}
