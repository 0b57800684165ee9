// `npm test`: type check, lint and format check, and the tests that need nothing but the project itself, in about two minutes. Each runs
// even when an earlier one failed.
//
//   npm test                       what is not in NOT_QUICK (scripts/test-areas.js), with fewer random sequences
//   npm run test:all               everything
//   npm run test:long              also what takes long (tests look at THROUGHLINE_LONG)
//   npm test -- engine             all tests of an area (scripts/test-areas.js), also those that `npm test` leaves out
//   npm test -- src/core           all tests whose path contains src/core; other arguments go to vitest as they are
//   npm run test:all -- --without browser  not the tests of these parts (PARTS in scripts/test-areas.js), divided by commas
//   npm run test:all -- --record   everything, and records how long each file took (scripts/test-order.js); with test:long, tests also
//                                  write their figures into the documents (THROUGHLINE_RECORD)
//
// `npm test` installs no packages but those of the project. Tests that need others are skipped if those are not installed.
//
// The last line is `N passed, N failed` and, if any were skipped, `, N skipped`. Above it, each failure and skip is listed with its reason.
import { spawn } from 'node:child_process';
import { globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { AREAS, leftOut, leftOutInWords, PARTS, vitestArguments } from './test-areas.js';
import { outOfDate, record } from './test-order.js';
import { partsOf, processorSeconds, tableOf } from './test-parts.js';

const root = fileURLToPath(new URL('..', import.meta.url));
const MODES = ['--all', '--long'];
const mode = MODES.find((flag) => process.argv.includes(flag));
const recording = process.argv.includes('--record');
const given = process.argv.slice(2).filter((arg) => arg !== '--record' && !MODES.includes(arg));
const without = given.includes('--without') ? (given.splice(given.indexOf('--without'), 2)[1] ?? '') : undefined;
const noPart = without?.split(',').find((part) => !Object.hasOwn(PARTS, part));
if (noPart !== undefined) {
  console.error(
    `"${noPart}" is not a part of the tests. Give one or more, divided by commas: ${Object.keys(PARTS).join(', ')}.`,
  );
  process.exit(2);
}

const files = globSync('{src,test,web}/**/*.test.ts', { cwd: root, exclude: ['**/node_modules/**'] });
const chosen = vitestArguments(given, files);
if ('unknown' in chosen) {
  console.error(`"${chosen.unknown}" is not an area, and no test file has it in its path.`);
  console.error(`Areas: ${Object.keys(AREAS).join(', ')}.`);
  process.exit(2);
}
// Whoever names tests gets all of them.
const isQuick = mode === undefined && chosen.files.length === files.length;
if (isQuick) process.env.THROUGHLINE_QUICK = '1';
if (mode === '--long') process.env.THROUGHLINE_LONG = '1';
if (recording) process.env.THROUGHLINE_RECORD = '1';
if (without !== undefined) process.env.THROUGHLINE_WITHOUT = without;
const vitestArgs = chosen.args;
const notNow = leftOut(process.env);
const isLeftOut = (/** @type {string} */ file) => notNow.some((start) => file.startsWith(start));
console.log(`${chosen.files.filter((file) => !isLeftOut(file)).length} of ${files.length} test files`);

// Three of them run at once. With its usual four threads, tsc takes nearly twice the processor time, because each thread checks the types
// that it needs.
const TSC = ['--noEmit', '--singleThreaded'];

// vitest colours its output wherever TERM is set, also into a file.
const plain = process.stdout.isTTY || 'FORCE_COLOR' in process.env ? {} : { NO_COLOR: '1' };

const start = performance.now();
const total = await checks();
const checked = { wall: secondsSince(start), processor: processorSeconds(), tests: total.passed + total.failed.length };
const tests = await runTests();
total.passed += tests.passed;
total.failed.push(...tests.failed);
total.skipped.push(...tests.skipped);

console.log('');
for (const { name, why } of total.skipped) console.log(`skipped: ${name}: ${why}`);
for (const { name, why } of total.failed) console.log(`failed: ${name}: ${why}`);
const parts = { checks: checked, ...partsOf(tests.files) };
const all = { wall: secondsSince(start), processor: processorSeconds(), tests: total.passed + total.failed.length };
for (const line of tableOf({ ...parts, all })) console.log(line);
// Not after a failure: failed tests may have ended early, or at their time limit.
if (mode !== undefined && given.length === 0 && without === undefined && total.failed.length === 0) {
  const why = outOfDate(tests.files);
  if (recording) record(tests.files);
  else if (why !== null) console.log(why);
}
if (isQuick) for (const line of leftOutInWords(files)) console.log(line);
const skipped = total.skipped.length > 0 ? `, ${total.skipped.length} skipped` : '';
console.log(`${total.passed} passed, ${total.failed.length} failed${skipped}`);
process.exitCode = total.failed.length > 0 ? 1 : 0;

/**
 * Runs all checks at once, because none of them keeps every core busy. The output of each is printed when it has ended.
 * @returns {Promise<import('./test-reporter.js').Report>}
 */
async function checks() {
  const steps = /** @type {const} */ ([
    ['type check', 'typescript/bin/tsc', [...TSC, ...onlyChanged('all')]],
    ['type check of the page', 'typescript/bin/tsc', [...TSC, '-p', 'web', ...onlyChanged('page')]],
    [
      'type check of the tests of the page',
      'typescript/bin/tsc',
      [...TSC, '-p', 'test/browser/page', ...onlyChanged('page-tests')],
    ],
    ['lint and format', '@biomejs/biome/bin/biome', ['check', '--error-on-warnings', '--diagnostic-level=warn']],
  ]);
  const ended = await Promise.all(
    steps.map(async ([name, program, args]) => {
      const { ok, output, seconds } = await run(program, args, 'pipe');
      console.log(`== ${name}: ${ok ? 'ok' : 'FAILED'} in ${seconds.toFixed(1)} s\n${output}`.trimEnd());
      return { name, ok };
    }),
  );
  const failed = ended.filter(({ ok }) => !ok).map(({ name }) => ({ name, why: 'see above' }));
  return { passed: ended.length - failed.length, failed, skipped: [] };
}

/**
 * Arguments for tsc. The quick run checks only changed files and the files that import them.
 * @param {string} project
 */
function onlyChanged(project) {
  if (!isQuick) return [];
  return ['--incremental', '--tsBuildInfoFile', join(root, `node_modules/.cache/throughline-tsc-${project}.json`)];
}

/** @returns {Promise<import('./test-reporter.js').TestReport>} */
async function runTests() {
  const folder = mkdtempSync(join(tmpdir(), 'throughline-test-'));
  const file = join(folder, 'report.json');
  try {
    const reporters = ['--reporter=./scripts/test-reporter.js', '--reporter=default'];
    const env = { THROUGHLINE_TEST_REPORT: file };
    const { ok } = await run('vitest/vitest.mjs', ['run', ...reporters, ...vitestArgs], 'inherit', env);
    const report = JSON.parse(readFileSync(file, 'utf8'));
    if (!ok && report.failed.length === 0) report.failed.push({ name: 'tests', why: 'vitest failed, see above' });
    if (report.passed + report.failed.length === 0) report.failed.push({ name: 'tests', why: 'no test ran' });
    return report;
  } catch (error) {
    const why = `vitest left no report (${error})`;
    return { files: {}, passed: 0, failed: [{ name: 'tests', why }], skipped: [] };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/**
 * Runs a program of node_modules with the same Node as this script.
 * @param {string} program
 * @param {readonly string[]} args
 * @param {'inherit' | 'pipe'} prints `pipe`: `output` has what it printed
 * @param {Record<string, string>} [env]
 * @returns {Promise<{ ok: boolean, output: string, seconds: number }>}
 */
function run(program, args, prints, env) {
  const started = performance.now();
  const child = spawn(process.execPath, [join(root, 'node_modules', program), ...args], {
    cwd: root,
    env: { ...process.env, ...plain, ...env },
    stdio: ['ignore', prints, prints],
  });
  /** @type {Buffer[]} */
  const chunks = [];
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (chunk) => chunks.push(chunk));
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code) =>
      resolve({ ok: code === 0, output: Buffer.concat(chunks).toString(), seconds: secondsSince(started) }),
    );
  });
}

/** @param {number} then */
function secondsSince(then) {
  return (performance.now() - then) / 1000;
}
