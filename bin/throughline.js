#!/usr/bin/env node
// Starts Throughline: from dist/ in the published package, straight from src/ in a checkout.
// An older Node than we need starts a newer one (other-node.js), or says what it needs.
const { existsSync } = require('node:fs');
const module_ = require('node:module');
const { join } = require('node:path');
const { pathToFileURL } = require('node:url');
const { cacheFolder } = require('./cache-folder.js');
const { isOld, sentence } = require('./versions.js');

// Node does not strip types below node_modules, so the published package holds dist/ and no src/.
const source = join(__dirname, '..', 'src', 'main.ts');
const isCheckout = existsSync(source);

// What npm writes last: a folder without it was left by an installation that was cut off.
const isInstalled = !isCheckout || existsSync(join(__dirname, '..', 'node_modules', '.package-lock.json'));
const INSTALL = 'Run "npm start" in it: it installs everything and starts a server. Then run this again.';

if (!isInstalled) fail(`Nothing is installed in this checkout yet. ${INSTALL}`);
else if (!isOld) start();
else if (!require('./other-node.js').goOver()) {
  fail(
    isCheckout
      ? `${sentence} This checkout lacks the newer Node that npm installs. ${INSTALL}`
      : `${sentence} Install a newer Node, or run "npm install node@24" where Throughline is installed: the command then uses that one.`,
  );
}

/** @param {string} what */
function fail(what) {
  console.error(`throughline: ${what}`);
  process.exitCode = 3;
}

function start() {
  // With NODE_COMPILE_CACHE, Node has enabled its cache already.
  const folder = process.env.NODE_COMPILE_CACHE ? null : cacheFolder();
  if (folder !== null) module_.enableCompileCache(folder);
  if (isCheckout) import(pathToFileURL(source).href).then(({ main }) => main());
  else require(join(__dirname, '..', 'dist', 'main.cjs'));
}
