// Runs the compiled program. Node's own compile cache keeps only what is compiled while a file is loaded; a function is compiled when it
// is first called, again in every process: 30 ms of a prompt. So the files of dist/ are run with V8's cache as it is at the end of a
// command, one for each command (docs/decisions/0081-the-package-is-bundled.md).
const {
  closeSync,
  fstatSync,
  lstatSync,
  mkdirSync,
  openSync,
  readSync,
  renameSync,
  rmSync,
  writeFileSync,
} = require('node:fs');
const nodeModule = require('node:module');
const { basename, dirname, join } = require('node:path');
const vm = require('node:vm');
const { crc32 } = require('node:zlib');

exports.start = start;

/**
 * @param {string} main
 * @param {(exported: any) => void} [run]
 */
function start(main, run) {
  withoutWarning('vm.USE_MAIN_CONTEXT_DEFAULT_LOADER');
  const caches = cachesFor(process.argv[2] ?? '');
  /** @type {Map<string, { exports: unknown }>} */
  const loaded = new Map();
  /** @type {Map<string, vm.Script>} by the file that has no cache yet, or an unusable one */
  const uncached = new Map();

  /** @param {string} file */
  const load = (file) => {
    const known = loaded.get(file);
    if (known !== undefined) return known.exports;
    const own = { exports: {} };
    loaded.set(file, own);
    // Before the cache: both are read into the same space.
    const source = asText(read(file, BEFORE, AFTER));
    const cachedData = caches.read(file);
    const script = new vm.Script(source, {
      filename: file,
      importModuleDynamically: vm.constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
      ...(cachedData && { cachedData }),
    });
    if (cachedData === null || script.cachedDataRejected) uncached.set(file, script);
    const folder = dirname(file);
    const need = (/** @type {string} */ name) => {
      if (name.startsWith('./')) return load(join(folder, name));
      return nodeModule.isBuiltin(name) ? require(name) : nodeModule.createRequire(file)(name);
    };
    script.runInThisContext()(own.exports, need, own, file, folder);
    return own.exports;
  };

  const exported = load(main);
  run?.(exported);
  process.once('exit', (code) => {
    // A command that was mistyped or did not work shows little of what the next one needs.
    if (code === 0) for (const [file, script] of uncached) caches.write(file, script);
  });
  // All is done and written. Otherwise Node would take everything apart first, which the system does faster. Not at `exit`: whoever
  // listens for that after us would not be called, and agents would go on.
  process.once('beforeExit', () => process.exit());
}

/**
 * Node warns once about the way in which we let our files import packages. The person at the terminal can do nothing about it.
 * @param {string} start how the warning begins
 */
function withoutWarning(start) {
  const warn = process.emitWarning;
  process.emitWarning = (/** @type {string | Error} */ warning, /** @type {any[]} */ ...rest) => {
    if (!String(warning).startsWith(start)) warn.call(process, warning, ...rest);
  };
}

/**
 * The names of compiled files have a hash of what is in them, so a cache is never that of another version. V8 refuses what another
 * version of itself has written.
 * @param {string} command
 */
function cachesFor(command) {
  const folder = /^[a-z-]*$/.test(command) ? ownFolder(nodeModule.getCompileCacheDir()) : null;
  const nameOf = (/** @type {string} */ file) => join(folder ?? '', `${basename(file)}.${command || 'help'}`);
  return {
    read: (/** @type {string} */ file) => (folder === null ? null : readIfThere(nameOf(file))),
    write(/** @type {string} */ file, /** @type {vm.Script} */ script) {
      if (folder === null) return;
      const unfinished = `${nameOf(file)}.${process.pid}`;
      try {
        writeFileSync(unfinished, withSum(script.createCachedData()), { mode: 0o600 });
        renameSync(unfinished, nameOf(file));
      } catch {
        rmSync(unfinished, { force: true }); // a full disk makes the next command slower, and nothing else
      }
    },
  };
}

/**
 * A folder of ours in that of Node's own cache. Null: there can be none, or others may write to it. What is in it is run.
 * @param {string | undefined} cache
 */
function ownFolder(cache) {
  if (cache === undefined) return null;
  const folder = join(cache, 'throughline');
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const { uid, mode } = lstatSync(folder);
    return process.getuid === undefined || (uid === process.getuid() && (mode & 0o022) === 0) ? folder : null;
  } catch {
    return null;
  }
}

/** V8 runs a damaged cache, and crashes. At the end: what does not begin at a multiple of 8, V8 would copy. @param {Buffer} data */
function withSum(data) {
  const sum = Buffer.alloc(4);
  sum.writeUInt32LE(crc32(data));
  return Buffer.concat([data, sum]);
}

const BEFORE = '(function (exports, require, module, __filename, __dirname) {';
const AFTER = '\n})';

/**
 * V8 keeps text of this length apart. A shorter one is among the young objects, of which there is room for a megabyte: long ones fill it
 * before a command has started its agent, and a collection of garbage takes a millisecond. So long text is made so long, with spaces.
 */
const APART = 2 ** 17;
const LONG = APART / 2;

/** What was read last is overwritten. Memory that is used for the first time takes a millisecond for each megabyte. */
let space = Buffer.alloc(0);

/** All of a file, between these texts, until the next call. @param {string} file */
function read(file, before = '', after = '') {
  const open = openSync(file, 'r');
  try {
    const { size } = fstatSync(open);
    const most = Math.max(before.length + size + after.length, APART);
    if (most > space.length) space = Buffer.allocUnsafeSlow(2 * most);
    const start = space.write(before, 'latin1');
    const end = start + readSync(open, space, start, size, 0);
    return space.subarray(0, end + space.write(after, end, 'latin1'));
  } finally {
    closeSync(open);
  }
}

/** What was just read. @param {Buffer} bytes */
function asText({ length }) {
  const wanted = length < LONG ? length : Math.max(length, APART);
  return space.fill(' ', length, wanted).toString('latin1', 0, wanted);
}

/** Null: it is not there, or damaged. @param {string} file */
function readIfThere(file) {
  try {
    const bytes = read(file);
    const data = bytes.subarray(0, -4);
    return bytes.readUInt32LE(data.length) === crc32(data) ? data : null;
  } catch {
    return null;
  }
}
