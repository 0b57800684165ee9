// `npm run page`: builds the page (web/) into dist/page, as `throughline serve` serves it. Takes milliseconds when nothing has changed.
//
//   npm run page                 builds it if its sources have changed
//   npm run page -- --watch      and again after every change, for work on the page
//
// `npm start`, `npm run build` and tests call it too. If several do so at once, one builds and the others wait. The page is built beside
// dist/page and then renamed, so that a killed build leaves no incomplete page.
import { createHash } from 'node:crypto';
import { existsSync, globSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { readFile, watch, writeFile } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { brotliCompress, gzip } from 'node:zlib';
import { lockFile } from '../src/host/file-lock.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const DIST = join(root, 'dist');
const PAGE = join(DIST, 'page');
const LOCK = join(root, 'node_modules/.cache/throughline-page.lock');
/** The file with the hash of the sources. It is written together with the page, so it always belongs to that build. */
const BUILT_OF = '.built-of';

/** Everything that the page is built from. The lock file stands for the packages: it has their checksums. */
const FOLDERS = ['web', 'src/core', 'src/flow', 'src/ports', 'src/wire', 'src/clients', 'src/library'];
const FILES = ['src/client.ts', 'tsconfig.json', 'package-lock.json', 'scripts/page.js'];
const IS_TEST = /\.test\.tsx?$/;

/** The file with the licences of the bundled packages. */
const LICENSES = 'LICENSES.md';
/** Packages whose rules are in the styles. The bundler does not list them. */
const IN_STYLES = ['tailwindcss'];

/** Compressed copies, as the server looks for them (src/faces/http/pages/page.ts). */
const COMPRESSED = { '.br': promisify(brotliCompress), '.gz': promisify(gzip) };
const COMPRESSIBLE = /\.(js|css|svg|json|webmanifest)$/;

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const watching = process.argv.includes('--watch');
  const isBuilt = await reported(watching);
  if (watching) await watchSources();
  else if (!isBuilt) process.exitCode = 1;
}

/** Builds the page unless it is up to date. Throws when the sources cannot be built; the earlier page stays. */
export async function ensurePage() {
  if (whyOutOfDate() === null) return;
  mkdirSync(dirname(LOCK), { recursive: true });
  let lock = lockFile(LOCK);
  for (; lock === null; lock = lockFile(LOCK)) await delay(50);
  try {
    const why = whyOutOfDate();
    if (why !== null) await build(why); // otherwise another process has built it meanwhile
  } finally {
    lock.release();
  }
}

/** Null: the page is up to date. */
function whyOutOfDate() {
  if (!existsSync(join(PAGE, 'index.html'))) return 'there is none yet';
  const of = existsSync(join(PAGE, BUILT_OF)) ? readFileSync(join(PAGE, BUILT_OF), 'utf8') : '';
  return of === hashOf(sources()) ? null : 'its sources have changed';
}

/** Relative to the checkout, in order. */
function sources() {
  const inFolders = globSync(
    FOLDERS.map((folder) => `${folder}/**/*.*`),
    { cwd: root },
  );
  return [...FILES, ...inFolders.filter((file) => !IS_TEST.test(file)).sort()];
}

/** @param {readonly string[]} files */
function hashOf(files) {
  const hash = createHash('sha256');
  for (const file of files)
    hash
      .update(`${file}\0`)
      .update(readFileSync(join(root, file)))
      .update('\0');
  return hash.digest('hex');
}

/** @param {string} why */
async function build(why) {
  console.error(`page: building it (${why})`);
  const start = performance.now();
  mkdirSync(DIST, { recursive: true });
  // Left by killed builds: only the holder of the lock builds.
  for (const name of readdirSync(DIST)) {
    if (name.startsWith('.page-')) rmSync(join(DIST, name), { recursive: true });
  }
  const [building, replaced] = [join(DIST, `.page-${process.pid}`), join(DIST, `.page-old-${process.pid}`)];
  const files = sources();
  const of = hashOf(files);
  try {
    checkSources(await bundle(building), files);
    await Promise.all([compress(join(building, 'assets')), addLicenses(join(building, LICENSES))]);
    writeFileSync(join(building, BUILT_OF), of);
    if (existsSync(PAGE)) renameSync(PAGE, replaced);
    renameSync(building, PAGE);
  } finally {
    for (const folder of [building, replaced]) rmSync(folder, { recursive: true, force: true });
  }
  console.error(`page: built in ${((performance.now() - start) / 1_000).toFixed(1)} s`);
}

/**
 * @param {string} outDir
 * @returns {Promise<string[]>} the bundled files
 */
async function bundle(outDir) {
  // With another value, such as a test runner sets, Vite would bundle React for development.
  process.env.NODE_ENV = 'production';
  const vite = await import('vite');
  const built = await vite.build({
    configFile: join(root, 'web/vite.config.ts'),
    logLevel: 'warn',
    build: { outDir, license: { fileName: LICENSES } },
  });
  const outputs = /** @type {import('vite').Rolldown.RolldownOutput[]} */ ([built].flat());
  return outputs.flatMap(({ output }) => output.flatMap((file) => (file.type === 'chunk' ? file.moduleIds : [])));
}

/**
 * Throws if a file is bundled but not hashed: a change of it would cause no new build.
 * @param {readonly string[]} bundled
 * @param {readonly string[]} hashed
 */
function checkSources(bundled, hashed) {
  const ours = bundled.map((id) => relative(root, id.split('?', 1)[0] ?? '')).filter((id) => /^(src|web)\//.test(id));
  const missed = ours.find((id) => !hashed.includes(id));
  if (missed !== undefined) throw new Error(`${missed} is part of the page; add its folder to scripts/page.js.`);
}

/** @param {string} folder */
async function compress(folder) {
  const names = readdirSync(folder).filter((name) => COMPRESSIBLE.test(name));
  await Promise.all(
    names.flatMap((name) =>
      Object.entries(COMPRESSED).map(async ([end, compressed]) => {
        const bytes = await readFile(join(folder, name));
        const smaller = await compressed(bytes);
        if (smaller.length < bytes.length) await writeFile(join(folder, name + end), smaller);
      }),
    ),
  );
}

/** @param {string} file */
async function addLicenses(file) {
  const texts = IN_STYLES.map(
    (name) => `\n## ${name}\n\n${readFileSync(join(root, 'node_modules', name, 'LICENSE'), 'utf8')}`,
  );
  await writeFile(file, [await readFile(file, 'utf8'), ...texts].join('\n'));
}

/**
 * False: it could not be built.
 * @param {boolean} watching
 */
async function reported(watching) {
  try {
    await ensurePage();
    return true;
  } catch (error) {
    console.error(`page: it could not be built. ${error instanceof Error ? error.message : error}`);
    if (watching) console.error('page: waiting for a change');
    return false;
  }
}

async function watchSources() {
  console.error('page: watching its sources; reload the page after a build');
  let changed = Promise.withResolvers();
  const follow = async (/** @type {string} */ folder) => {
    for await (const _ of watch(join(root, folder), { recursive: true })) changed.resolve(undefined);
  };
  for (const folder of FOLDERS) void follow(folder);
  for (;;) {
    await changed.promise;
    await delay(50); // editors write several files at once
    changed = Promise.withResolvers();
    await reported(true);
  }
}
