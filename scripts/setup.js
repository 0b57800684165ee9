// Brings node_modules up to date before another npm script runs; silent when there is nothing to do.
//
//   node scripts/setup.js                 the project itself
//   node scripts/setup.js test/agents     also these folders, each with its own package.json and lock file
//   node scripts/setup.js --page          and builds the page, if its sources have changed (scripts/page.js)
//
// Without its own packages the project cannot do anything, so it ends with 1 if they cannot be installed. Without the packages of
// another folder only some tests cannot run, and those are skipped with the reason. So a failure there is only reported.
//
// Runs on any version of Node, so it is plain JavaScript without dependencies. It is called from `pre…` scripts and not
// by `setup && node …`: a shell remembers where it found `node`, and would continue with the old one.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { delimiter, join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';

const NEEDED = { major: 24, minor: 15 };
const root = fileURLToPath(new URL('..', import.meta.url));
const ownNode = join(root, 'node_modules', '.bin', process.platform === 'win32' ? 'node.cmd' : 'node');

const given = process.argv.slice(2);
const folders = given.filter((arg) => arg !== '--page');
// At once: much of the time is spent waiting for the network.
const failures = await Promise.all([root, ...folders.map((name) => join(root, name))].map(setUp));
for (const [index, failure] of failures.entries()) {
  if (failure === null) continue;
  if (index === 0) fail(failure);
  console.error(`${failure} Tests that need these packages will be skipped.`);
}
if (given.includes('--page')) buildPage();

/**
 * Installs the packages of a folder unless they are up to date. Null: they are installed. Otherwise what failed.
 * @param {string} folder
 * @returns {Promise<string | null>}
 */
async function setUp(folder) {
  const name = relative(root, folder) || 'the project';
  if (!existsSync(join(folder, 'package-lock.json'))) fail(`setup: ${name} has no package-lock.json.`);
  const why = outOfDate(folder);
  if (why === undefined) return null;
  console.error(`setup: installing the packages of ${name} (${why})`);
  const npm = spawn('npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error'], {
    cwd: folder,
    env: { ...process.env, PATH: systemPath() },
    stdio: ['ignore', 'ignore', 'inherit'],
    shell: process.platform === 'win32',
  });
  try {
    const [status] = await once(npm, 'exit');
    if (status !== 0) return `setup: \`npm ci\` failed for ${name}.`;
  } catch (error) {
    return `setup: \`npm ci\` failed for ${name}: ${error}`;
  }
  return folder === root ? nodeFault() : null;
}

/** Uses the Node of node_modules, because the one that runs this script may be too old. The server works without the page. */
function buildPage() {
  const shell = process.platform === 'win32';
  const { status } = spawnSync(ownNode, [join(root, 'scripts', 'page.js')], {
    stdio: ['ignore', 'ignore', 'inherit'],
    shell,
  });
  if (status !== 0) console.error('setup: the page could not be built. The server starts without it.');
}

/**
 * Why the folder needs an install, or undefined. npm writes node_modules/.package-lock.json last, so an interrupted
 * install has none. To compare the two files takes a millisecond or two.
 * @param {string} folder
 */
function outOfDate(folder) {
  const installed = packagesOf(join(folder, 'node_modules', '.package-lock.json'));
  if (installed === undefined) return 'nothing is installed yet';
  const wanted = packagesOf(join(folder, 'package-lock.json')) ?? {};
  for (const [path, wantedPackage] of Object.entries(wanted)) {
    if (path === '') continue;
    const { version, integrity, optional } = wantedPackage;
    const found = installed[path];
    if (!found && optional && !(folder !== root && isForThisMachine(wantedPackage))) continue;
    if (!found) return `${path} is missing`;
    if (found.version !== version) return `${path} is ${found.version}, not ${version}`;
    if (found.integrity !== integrity) return `${path} has another checksum`;
  }
  if (folder === root && !existsSync(ownNode)) return 'node_modules/.bin/node is missing';
  return undefined;
}

/**
 * Whether an optional package should be installed on this machine. npm ignores it when one cannot be downloaded, but an agent
 * without its program is useless. The project itself works without its optional packages, so a missing one causes no install.
 * @param {LockedPackage} locked
 */
function isForThisMachine({ os = [], cpu = [], libc }) {
  if (!os.includes(process.platform) || !cpu.includes(process.arch)) return false;
  const report = /** @type {{header?: {glibcVersionRuntime?: string}}} */ (process.report.getReport());
  return libc === undefined || libc.includes(report.header?.glibcVersionRuntime ? 'glibc' : 'musl');
}

/** @typedef {{version?: string, integrity?: string, optional?: boolean, os?: string[], cpu?: string[], libc?: string[]}} LockedPackage */

/**
 * @param {string} file
 * @returns {Record<string, LockedPackage> | undefined}
 */
function packagesOf(file) {
  try {
    return JSON.parse(readFileSync(file, 'utf8')).packages;
  } catch {
    return undefined; // absent or cut short: both mean "install"
  }
}

/** PATH without node_modules/.bin: `npm ci` deletes the `node` in there while it runs. */
function systemPath() {
  const bin = `node_modules${sep}.bin`;
  return (process.env.PATH ?? '')
    .split(delimiter)
    .filter((entry) => !entry.endsWith(bin))
    .join(delimiter);
}

/** Null: the project has the Node that it needs. */
function nodeFault() {
  const run = spawnSync(ownNode, ['--version'], { encoding: 'utf8', shell: process.platform === 'win32' });
  const found = run.status === 0 ? run.stdout.trim() : '';
  const [major = 0, minor = 0] = found.replace('v', '').split('.').map(Number);
  if (major > NEEDED.major || (major === NEEDED.major && minor >= NEEDED.minor)) return null;
  return (
    `setup: Throughline needs Node ${NEEDED.major}.${NEEDED.minor} or newer and the npm package "node" should have brought it, ` +
    `but node_modules/.bin/node ${found ? `is ${found}` : 'does not run'}; if npm's ignore-scripts setting is on, turn it off for this folder.`
  );
}

/** @param {string} sentence */
function fail(sentence) {
  console.error(sentence);
  process.exit(1);
}
