// vitest runs this before the tests: makes the program that they start, as the published package has it (build.js), once for each state
// of its sources. Tests start it more than a thousand times, and from the sources that takes three times as long. Likewise the small agents
// that tests start. `test/program.ts` says where all of it is.
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
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';
import { bundleForNode } from './bundle.js';

const root = fileURLToPath(new URL('..', import.meta.url));
const FOLDER = join(root, 'node_modules/.cache/throughline-program');

/** All that goes into it. The packages are named with their checksums in the lock file. */
const SOURCES = [
  'src/**/*.{ts,js}',
  'bin/*',
  'scripts/{bundle,manifest,test-program}.js',
  'package.json',
  'package-lock.json',
  'test/agents/acp-programs/*.ts',
];
const IS_TEST = /\.test\.ts$/;

/** One that was not made today is of sources that have changed since, or can be made again. */
const KEPT_MS = 86_400_000;

/** @param {import('vitest/node').TestProject} project */
export default async function setup(project) {
  process.env.THROUGHLINE_TEST_PROGRAM = await builtProgram();
  project.onTestsRerun(async () => {
    process.env.THROUGHLINE_TEST_PROGRAM = await builtProgram();
  });
}

/** Makes it unless it is there. Several may do so at once: each makes its own, and the first to finish is used. */
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
    // Tests that need the page build it (scripts/page.js).
    symlinkSync(join(root, 'dist/page'), join(making, 'dist/page'));
    for (const name of globSync('*', { cwd: FOLDER })) {
      const old = join(FOLDER, name);
      if (statSync(old).mtimeMs < Date.now() - KEPT_MS) rmSync(old, { recursive: true, force: true });
    }
    chmodSync(making, 0o755); // some tests are another user
    renameSync(making, made);
  } catch (error) {
    if (!existsSync(program)) throw error;
  } finally {
    rmSync(making, { recursive: true, force: true });
  }
  return program;
}

/**
 * The small agents of the tests, with the packages that they use: they start twice as fast.
 * @param {string} folder
 */
async function bundleAgents(folder) {
  const input = globSync('test/agents/acp-programs/*.ts', { cwd: root });
  const build = await rolldown({ cwd: root, input, platform: 'node', external: /^node:/ });
  await build.write({ dir: folder, format: 'es', entryFileNames: '[name].mjs', chunkFileNames: '[name]-[hash].mjs' });
  await build.close();
}

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
