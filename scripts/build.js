// `npm run build`: builds dist/, which is published.
//
// Everything is bundled (bundle.js):
//   main.cjs           the command line
//   NAME.js            an entry of package.json's `exports`; it checks Node's version first, unless it also runs in browsers
//   NAME.browser.js    an entry that also runs in browsers, as one ES module
//   THREADS            worker threads; they are started by their path, so they lie beside the chunk that starts them
//   scripted-agent.cjs the scripted agent, a small program of its own; also started by its path
//   bridge.cjs         the program that is sent to rented machines; also found by its path
//   NAME-HASH.cjs      chunks that the files above load
//   types/             the declarations of the sources that the entries reach
//   page/              the page (scripts/page.js), with the licences of the packages in it
import { spawnSync } from 'node:child_process';
import { copyFileSync, globSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { bundleAlone, bundleForNode, ENTRIES } from './bundle.js';
import { BUNDLED, IN_BROWSERS } from './manifest.js';
import { ensurePage } from './page.js';

const at = (/** @type {string} */ path) => fileURLToPath(new URL(`../${path}`, import.meta.url));

for (const name of globSync('*', { cwd: at('dist') })) {
  if (name !== 'page') rmSync(at(`dist/${name}`), { recursive: true, force: true });
}
await ensurePage();
await bundleForNode(at('dist'));
for (const name of IN_BROWSERS) await bundleAlone(at('dist'), { [`${name}.browser`]: ENTRIES[name] ?? '' }, 'es');
for (const name of BUNDLED) copyFileSync(at(`node_modules/${name}/LICENSE`), at(`dist/LICENSE-${name}`));
declareTypes();

function declareTypes() {
  // With several threads, tsc takes twice the processor time. On two cores that is slower.
  const args = [at('node_modules/typescript/bin/tsc'), '-p', at('tsconfig.build.json'), '--singleThreaded'];
  const tsc = spawnSync(process.execPath, args, { stdio: 'inherit' });
  if (tsc.status !== 0) process.exit(1);
  const folder = at('dist/types');
  const entries = Object.values(ENTRIES).map((source) => join(folder, source.replace(/^src\/(.*)ts$/, '$1d.ts')));
  // The types of `await using` are newer than the `lib` that most programs choose.
  for (const file of entries) {
    writeFileSync(file, `/// <reference lib="esnext.disposable" />\n${readFileSync(file, 'utf8')}`);
  }
  const needed = new Set(entries);
  for (const file of needed) {
    for (const [, path = ''] of readFileSync(file, 'utf8').matchAll(/(?:from|import\()\s*['"](\.[^'"]+)\.ts['"]/g)) {
      needed.add(resolve(dirname(file), `${path}.d.ts`));
    }
  }
  for (const file of globSync('**/*.d.ts', { cwd: folder })) {
    if (!needed.has(join(folder, file))) rmSync(join(folder, file));
  }
}
