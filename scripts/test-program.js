// vitest runs this before the tests. It bundles the program that they start, as in the published package (build.js), once for each state
// of its sources: tests start it more than a thousand times, and from the sources each start takes three times as long. It also bundles
// the small agents and the other programs that tests start. `test/program.ts` gives their paths.
import { createHash } from 'node:crypto';
import {
  chmodSync,
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
} from 'node:fs';
import { join, matchesGlob, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';
import { bundleForNode } from './bundle.js';

const root = fileURLToPath(new URL('..', import.meta.url));
const FOLDER = join(root, 'node_modules/.cache/throughline-program');

/** Everything that the bundles are made from. The lock file stands for the packages: it has their checksums. */
const SOURCES = [
  'src/**/*.{ts,js}',
  'bin/*',
  'scripts/{bundle,lazy-zod,manifest,test-program}.js',
  'package.json',
  'package-lock.json',
  'test/*.ts',
  'test/agents/acp/programs/*.ts',
  'test/{contracts,faults}/**/*.ts',
  'test/e2e/support/*.ts',
  'bench/support/*.ts',
];
/** Their file names must be unique. */
const PROGRAMS = [
  'test/contracts/sqlite-child.ts',
  'test/e2e/support/{host,reader}-program.ts',
  'test/faults/programs/{follower,stepper,submitter,task-runner,task-stepper,worker}.ts',
];
const IS_TEST = /\.test\.ts$/;

/** Older bundles are removed. If one is needed again, it is built again. */
const KEPT_MS = 86_400_000;

/** @param {import('vitest/node').TestProject} project */
export default async function setup(project) {
  process.env.THROUGHLINE_TEST_PROGRAM = await builtProgram();
  project.onTestsRerun(async () => {
    process.env.THROUGHLINE_TEST_PROGRAM = await builtProgram();
  });
}

/** Builds the program unless it exists. If several processes do so at once, each builds its own, and the first to finish is used. */
async function builtProgram() {
  const made = join(FOLDER, hashOfSources());
  const program = join(made, 'bin/throughline.js');
  if (existsSync(program)) return program;
  mkdirSync(FOLDER, { recursive: true });
  const making = mkdtempSync(join(FOLDER, 'unfinished-'));
  try {
    for (const name of ['bin', 'package.json']) cpSync(join(root, name), join(making, name), { recursive: true });
    await bundleForNode(join(making, 'dist'));
    await bundleAgents(join(making, 'agents'));
    await bundlePrograms(join(making, 'programs'));
    // Tests that need the page build it (scripts/page.js).
    symlinkSync(join(root, 'dist/page'), join(making, 'dist/page'));
    for (const name of globSync('*', { cwd: FOLDER })) {
      const old = join(FOLDER, name);
      if (statSync(old).mtimeMs < Date.now() - KEPT_MS) rmSync(old, { recursive: true, force: true });
    }
    chmodSync(making, 0o755); // some tests run programs as another user
    renameSync(making, made);
  } catch (error) {
    if (!existsSync(program)) throw error;
  } finally {
    rmSync(making, { recursive: true, force: true });
  }
  return program;
}

/**
 * Bundles the small agents of the tests with the packages that they use, because they then start twice as fast.
 * @param {string} folder
 */
async function bundleAgents(folder) {
  const input = globSync('test/agents/acp/programs/*.ts', { cwd: root });
  const build = await rolldown({ cwd: root, input, platform: 'node', external: /^node:/, plugins: [withLazyZod] });
  await build.write({ dir: folder, format: 'es', entryFileNames: '[name].mjs', chunkFileNames: '[name]-[hash].mjs' });
  await build.close();
}

/**
 * Bundles the programs of tests that use our sources, because otherwise each start would load two hundred files.
 * @param {string} folder beside `dist`
 */
async function bundlePrograms(folder) {
  const build = await rolldown({
    cwd: root,
    input: globSync(PROGRAMS, { cwd: root }),
    platform: 'node',
    external: /^[@a-z]/,
    plugins: [{ name: 'where our files are', transform: (code, id) => asInDist(code, id) }],
  });
  const { output } = await build.write({
    dir: folder,
    format: 'es',
    entryFileNames: '[name].mjs',
    chunkFileNames: '[name]-[hash].mjs',
  });
  await build.close();
  const bundled = output.flatMap((file) => (file.type === 'chunk' ? file.moduleIds : []));
  for (const file of bundled.map((id) => relative(root, id))) {
    if (SOURCES.every((source) => !matchesGlob(file, source))) throw new Error(`${file} must be one of the SOURCES`);
  }
}

/**
 * Our sources start files beside them: the scripted agent and the threads. In a bundle, those are in `dist`.
 * @param {string} code
 * @param {string} id
 */
function asInDist(code, id) {
  if (!id.startsWith(join(root, 'src/')) || !code.includes('import.meta.url')) return null;
  return code.replaceAll('import.meta.url', "new URL('../dist/index.cjs', import.meta.url).href");
}

const LAZY_ZOD = join(root, 'scripts/lazy-zod.js');
const withLazyZod = {
  name: 'lazy-zod',
  /** @param {string} source @param {string | undefined} importer */
  resolveId: (source, importer) => (source === 'zod/v4' && importer !== LAZY_ZOD ? LAZY_ZOD : null),
};

function hashOfSources() {
  const hash = createHash('sha256');
  for (const file of globSync(SOURCES, { cwd: root }).sort()) {
    if (!IS_TEST.test(file))
      hash
        .update(`${file}\0`)
        .update(readFileSync(join(root, file)))
        .update('\0');
  }
  return hash.digest('hex').slice(0, 16);
}
