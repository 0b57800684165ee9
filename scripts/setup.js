// Brings node_modules up to date before another npm script runs; silent when there is nothing to do.
//
//   node scripts/setup.js                 the project itself
//   node scripts/setup.js test/agents     also these folders, each with its own package.json and lock file
//
// Without its own packages the project cannot do anything. Without those of another folder only some tests cannot run: they
// look for what they need and are skipped with the reason, so a failure there is told and not more.
//
// Runs on whatever Node the machine has, so it is plain JavaScript without dependencies. It is called from `pre…`
// scripts and not by `setup && node …`: a shell remembers where it found `node`, and would go on with the old one.
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { delimiter, join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';

const NEEDED = { major: 24, minor: 15 };
const root = fileURLToPath(new URL('..', import.meta.url));
const ownNode = join(root, 'node_modules', '.bin', process.platform === 'win32' ? 'node.cmd' : 'node');

for (const folder of [root, ...process.argv.slice(2).map((name) => join(root, name))]) setUp(folder);

/** @param {string} folder */
function setUp(folder) {
  const name = relative(root, folder) || 'the project';
  if (!existsSync(join(folder, 'package-lock.json'))) fail(`setup: ${name} has no package-lock.json.`);
  const why = outOfDate(folder);
  if (why === undefined) return;
  console.error(`setup: installing the packages of ${name} (${why})`);
  const npm = spawnSync('npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error'], {
    cwd: folder,
    env: { ...process.env, PATH: systemPath() },
    stdio: ['ignore', 'ignore', 'inherit'],
    shell: process.platform === 'win32',
  });
  const failed =
    npm.status === 0 ? undefined : `setup: \`npm ci\` failed for ${name}${npm.error ? `: ${npm.error.message}` : '.'}`;
  if (folder === root) {
    if (failed) fail(failed);
    checkNode();
  } else if (failed) {
    console.error(`${failed} What needs them is left out.`);
  }
}

/**
 * Why the folder needs an install, or undefined. npm writes node_modules/.package-lock.json last, after everything
 * else is in place, so an install that was cut short has none; comparing the two files costs a millisecond or two.
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
 * Whether an optional package should be here. npm passes over one that it could not download, and an agent without its
 * program is of no use. In the project itself optional packages may be missing for good, and are not asked for again.
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

function checkNode() {
  const run = spawnSync(ownNode, ['--version'], { encoding: 'utf8', shell: process.platform === 'win32' });
  const found = run.status === 0 ? run.stdout.trim() : '';
  const [major = 0, minor = 0] = found.replace('v', '').split('.').map(Number);
  if (major > NEEDED.major || (major === NEEDED.major && minor >= NEEDED.minor)) return;
  fail(
    `setup: Throughline needs Node ${NEEDED.major}.${NEEDED.minor} or newer and the npm package "node" should have brought it, ` +
      `but node_modules/.bin/node ${found ? `is ${found}` : 'does not run'}; if npm's ignore-scripts setting is on, turn it off for this folder.`,
  );
}

/** @param {string} sentence */
function fail(sentence) {
  console.error(sentence);
  process.exit(1);
}
