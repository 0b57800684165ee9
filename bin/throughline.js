#!/usr/bin/env node
// Starts Throughline: compiled from dist/ in the published package, straight from src/ in a checkout.
// Plain JavaScript that any Node since 18 can read, so that an old one gets a sentence and not a syntax error.
import { existsSync } from 'node:fs';
import module from 'node:module';

const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
if (major < 24 || (major === 24 && minor < 15)) {
  console.error(
    `throughline needs Node 24.15 or newer and was started with ${process.versions.node}: install a newer Node, ` +
      'or in a checkout run `npm start` once: it brings its own, which `npx throughline` then uses.',
  );
  process.exit(3);
}

// Without the cache, removing the types costs about 60 ms at every start. NODE_COMPILE_CACHE moves it elsewhere.
module.enableCompileCache();

// Node does not strip types below node_modules, so the published package holds dist/ and no src/.
const source = new URL('../src/main.ts', import.meta.url);
const compiled = new URL('../dist/main.js', import.meta.url);
await import((existsSync(source) ? source : compiled).href);
