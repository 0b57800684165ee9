// `npm pack` and `npm publish` call this before and after packing: it replaces package.json by the published one, and puts the
// checkout's back.
//
// In a checkout `import 'throughline'` must reach src/index.ts; in the published package, dist/index.js with its types. package.json
// has one `exports` for both: Node has no condition that tells the two apart, and does not fall back when a file is missing. So the
// entries are rewritten while npm packs, and what only a checkout needs is left out. A checkout brings its own Node, so any Node can run
// its scripts; a package needs the Node that runs it.
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const at = (/** @type {string} */ path) => fileURLToPath(new URL(`../${path}`, import.meta.url));
const manifest = at('package.json');
const kept = at('.package.checkout.json');

/** Packages that are bundled into dist/, because every command uses them. They are not dependencies of the published package. */
export const BUNDLED = ['commander'];

/** The Node that Throughline itself needs. */
const NODE = '>=24.15';

/** Entries that also run in browsers. */
export const IN_BROWSERS = ['client'];

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  if (process.argv[2] === 'published') {
    const original = readFileSync(manifest, 'utf8');
    writeFileSync(kept, original);
    writeFileSync(manifest, `${JSON.stringify(published(JSON.parse(original)), null, 2)}\n`);
  } else if (existsSync(kept)) {
    renameSync(kept, manifest);
  }
}

/**
 * The sources of the package's entries, by the name of the file in dist/.
 * @param {{ exports: Readonly<Record<string, string | { types: string }>> }} checkout
 * @returns {Record<string, string>}
 */
export function entriesOf({ exports }) {
  const sources = Object.entries(exports).map(([name, target]) => [fileOf(name), sourceOf(target).slice('./'.length)]);
  return Object.fromEntries(sources.filter(([, source = '']) => source.startsWith('src/')));
}

/** @param {string | { types: string }} target */
function sourceOf(target) {
  return typeof target === 'string' ? target : target.types;
}

/** @param {string} name of an entry: `.`, `./client` */
function fileOf(name) {
  return name === '.' ? 'index' : name.slice('./'.length);
}

/** @param {Record<string, any>} checkout */
export function published({ scripts, devDependencies, overrides, allowScripts, dependencies, ...rest }) {
  const exports = Object.entries(rest.exports).map(([name, target]) => {
    const source = sourceOf(target);
    const types = source.replace(/^\.\/src\/(.*)\.ts$/, './dist/types/$1.d.ts');
    if (types === source) return [name, target];
    const file = fileOf(name);
    const browser = IN_BROWSERS.includes(file)
      ? { node: `./dist/${file}.js`, default: `./dist/${file}.browser.js` }
      : null;
    return [name, { types, ...(browser ?? { default: `./dist/${file}.js` }) }];
  });
  const needed = Object.entries(dependencies).filter(([name]) => !BUNDLED.includes(name));
  return {
    ...rest,
    engines: { node: NODE },
    exports: Object.fromEntries(exports),
    dependencies: Object.fromEntries(needed),
  };
}
