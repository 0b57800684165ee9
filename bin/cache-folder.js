// The folder of Node's compile cache. Node runs what is in it, so nobody else may be able to write there. Node's own choice is a folder
// of a fixed name in the temporary folder of the system, which any user can create first.
const { existsSync, lstatSync, mkdirSync, realpathSync, statSync } = require('node:fs');
const { homedir } = require('node:os');
const { basename, dirname, isAbsolute, join } = require('node:path');

exports.cacheFolder = cacheFolder;

/**
 * `$XDG_CACHE_HOME/throughline`, otherwise `~/.cache/throughline`: created if it is missing. Null: others could write there, or it
 * cannot be created. Commands are slower then, and nothing else.
 */
function cacheFolder() {
  try {
    const { XDG_CACHE_HOME: named = '' } = process.env;
    const home = homedir();
    if (!isAbsolute(named) && !isAbsolute(home)) return null;
    return privateFolder(join(isAbsolute(named) ? named : join(home, '.cache'), 'throughline'));
  } catch {
    return null;
  }
}

/** @param {string} folder */
function privateFolder(folder) {
  const user = process.getuid?.();
  const parent = resolved(dirname(folder));
  if (user === undefined || !belongsTo(user, parent)) return null;
  const own = join(parent, basename(folder));
  make(own);
  const { uid, mode } = lstatSync(own);
  // The type too, because a link is refused.
  return uid === user && (mode & 0o170077) === DIRECTORY ? own : null;
}

const DIRECTORY = 0o040000;

/** One folder after the other: Node's own recursive mkdir never returns below one that accepts no entries, such as /proc. @param {string} folder */
function make(folder) {
  if (existsSync(folder)) return;
  make(dirname(folder));
  mkdirSync(folder, { mode: 0o700 });
}

/** The path without links. What does not exist yet is added to it. @param {string} path @returns {string} */
function resolved(path) {
  if (lstatSync(path, { throwIfNoEntry: false }) !== undefined) return realpathSync(path);
  return join(resolved(dirname(path)), basename(path));
}

/** Whether only this user and root can write in a folder and in all folders above it. @param {number} user @param {string} path */
function belongsTo(user, path) {
  for (let folder = path; ; folder = dirname(folder)) {
    if (existsSync(folder)) {
      const { uid, mode } = statSync(folder);
      if ((uid !== user && uid !== 0) || (mode & 0o022) !== 0) return false;
    }
    if (folder === dirname(folder)) return true;
  }
}
