// `npm pack` and `npm publish` call this to put the published package.json in place, and then the checkout's again.
//
// In a checkout `import 'throughline'` must reach src/index.ts, in the published package dist/index.js with its types,
// and npm has one `exports` for both: Node offers no condition that tells the two apart, and does not fall back when a
// file is missing. So the entries are rewritten for the moment of packing; what only a checkout needs is left out.
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const at = (/** @type {string} */ path) => fileURLToPath(new URL(`../${path}`, import.meta.url));
const manifest = at('package.json');
const kept = at('node_modules/.package.checkout.json');

if (process.argv[2] === 'published') {
  const original = readFileSync(manifest, 'utf8');
  writeFileSync(kept, original);
  writeFileSync(manifest, `${JSON.stringify(published(JSON.parse(original)), null, 2)}\n`);
} else if (existsSync(kept)) {
  renameSync(kept, manifest);
}

/** @param {Record<string, any>} checkout */
function published({ scripts, devDependencies, overrides, allowScripts, ...rest }) {
  const exports = Object.entries(rest.exports).map(([name, target]) => {
    const compiled = target.replace(/^\.\/src\/(.*)\.ts$/, './dist/$1');
    return [name, compiled === target ? target : { types: `${compiled}.d.ts`, default: `${compiled}.js` }];
  });
  return { ...rest, exports: Object.fromEntries(exports) };
}
