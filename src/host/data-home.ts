import { homedir, userInfo } from 'node:os';
import { isAbsolute, join } from 'node:path';

/** Where the data lives when nobody says otherwise. */
export function dataHome(): string {
  const { THROUGHLINE_HOME, XDG_DATA_HOME } = process.env;
  if (THROUGHLINE_HOME) return THROUGHLINE_HOME;
  if (XDG_DATA_HOME && isAbsolute(XDG_DATA_HOME)) return join(XDG_DATA_HOME, 'throughline');
  // With HOME set to nothing, as some services are started, the data would lie wherever each of them happens to be.
  const home = homedir() || userInfo().homedir;
  return join(home, '.local', 'share', 'throughline');
}
