// `npm test`: type check, lint and format check, all tests; each runs even when an earlier one failed.
//
//   npm test                       everything
//   npm test -- engine             only the tests of an area (scripts/test-areas.js)
//   npm test -- src/core           only tests whose path contains src/core; other arguments go to vitest as they are
//   npm run test:quick             without real agents, without the longest tests, and with fewer random sequences
//   npm run test:long              also what takes long (tests look at THROUGHLINE_LONG)
//   npm test -- --record           everything, and records how long each file took (scripts/test-order.js); with --long, tests also
//                                  write their figures into the documents (THROUGHLINE_RECORD)
//
// Closes with `N passed, N failed` and, if any were skipped, `, N skipped`; above it, each failure and skip with why.
import { spawnSync } from 'node:child_process';
import { globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { AREAS, vitestArguments } from './test-areas.js';
import { outOfDate, record } from './test-order.js';

const root = fileURLToPath(new URL('..', import.meta.url));
const MODES = { '--long': 'THROUGHLINE_LONG', '--quick': 'THROUGHLINE_QUICK' };
const recording = process.argv.includes('--record');
const given = process.argv.slice(2).filter((arg) => arg !== '--record');
if (recording) process.env.THROUGHLINE_RECORD = '1';
for (const [flag, variable] of Object.entries(MODES)) if (given.includes(flag)) process.env[variable] = '1';

const files = globSync('{src,test,web}/**/*.test.ts', { cwd: root, exclude: ['**/node_modules/**'] });
const chosen = vitestArguments(
  given.filter((arg) => !(arg in MODES)),
  files,
);
if ('unknown' in chosen) {
  console.error(`There is no area "${chosen.unknown}", and no test has that in its path.`);
  console.error(`Areas: ${Object.keys(AREAS).join(', ')}.`);
  process.exit(2);
}
const vitestArgs = chosen.args;

/** The quick run checks the types of changed files only, and of what imports them. */
const ONLY_CHANGED = ['--incremental', '--tsBuildInfoFile', join(root, 'node_modules/.cache/throughline-tsc.json')];

// vitest colours its output wherever TERM is set, also into a file.
const plain = process.stdout.isTTY || 'FORCE_COLOR' in process.env ? {} : { NO_COLOR: '1' };

const total = checks();
const tests = runTests();
total.passed += tests.passed;
total.failed.push(...tests.failed);
total.skipped.push(...tests.skipped);

console.log('');
for (const { name, why } of total.skipped) console.log(`skipped: ${name}: ${why}`);
for (const { name, why } of total.failed) console.log(`failed: ${name}: ${why}`);
const skipped = total.skipped.length > 0 ? `, ${total.skipped.length} skipped` : '';
// Failed tests may have ended early, or at their limit.
if (given.length === 0 && total.failed.length === 0) {
  const why = outOfDate(tests.seconds);
  if (recording) record(tests.seconds);
  else if (why !== null) console.log(why);
}
console.log(`${total.passed} passed, ${total.failed.length} failed${skipped}`);
process.exitCode = total.failed.length > 0 ? 1 : 0;

/** @returns {import('./test-reporter.js').Report} */
function checks() {
  /** @type {import('./test-reporter.js').Report} */
  const report = { passed: 0, failed: [], skipped: [] };
  const steps = /** @type {const} */ ([
    ['type check', 'typescript/bin/tsc', ['--noEmit', ...(process.env.THROUGHLINE_QUICK ? ONLY_CHANGED : [])]],
    ['type check of the page', 'typescript/bin/tsc', ['-p', 'web', '--noEmit']],
    ['type check of the tests of the page', 'typescript/bin/tsc', ['-p', 'test/browser/page', '--noEmit']],
    ['lint and format', '@biomejs/biome/bin/biome', ['check', '--error-on-warnings', '--diagnostic-level=warn']],
  ]);
  for (const [name, program, programArgs] of steps) {
    if (run(name, program, programArgs)) report.passed += 1;
    else report.failed.push({ name, why: 'see above' });
  }
  return report;
}

/** @returns {import('./test-reporter.js').TestReport} */
function runTests() {
  const folder = mkdtempSync(join(tmpdir(), 'throughline-test-'));
  const file = join(folder, 'report.json');
  try {
    const reporters = ['--reporter=./scripts/test-reporter.js', '--reporter=default'];
    const ok = run('tests', 'vitest/vitest.mjs', ['run', ...reporters, ...vitestArgs], {
      THROUGHLINE_TEST_REPORT: file,
    });
    const report = JSON.parse(readFileSync(file, 'utf8'));
    if (!ok && report.failed.length === 0) report.failed.push({ name: 'tests', why: 'vitest failed, see above' });
    if (report.passed + report.failed.length === 0) report.failed.push({ name: 'tests', why: 'no test ran' });
    return report;
  } catch (error) {
    return {
      seconds: {},
      passed: 0,
      failed: [{ name: 'tests', why: `vitest left no report (${error})` }],
      skipped: [],
    };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/**
 * Runs a program of node_modules on this very Node, between a heading and its duration.
 * @param {string} name
 * @param {string} program
 * @param {readonly string[]} programArgs
 * @param {Record<string, string>} [env]
 */
function run(name, program, programArgs, env) {
  console.log(`\n== ${name}`);
  const start = performance.now();
  const { status } = spawnSync(process.execPath, [join(root, 'node_modules', program), ...programArgs], {
    cwd: root,
    env: { ...process.env, ...plain, ...env },
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  console.log(`-- ${name}: ${status === 0 ? 'ok' : 'FAILED'} in ${((performance.now() - start) / 1000).toFixed(1)} s`);
  return status === 0;
}
