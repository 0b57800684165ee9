// Counts what a reader has to follow from a prompt to the agent, from a trace of a real run with the scripted agent:
// `node scripts/trace-prompt.js [CHECKOUT]`. How it counts is written in CONTRIBUTING.md, with the results.
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { functionsIn, traceFunctions } from './trace-functions.js';

/** @typedef {import('./trace-functions.js').Call} Call */
/** @typedef {import('../src/ports/engine.ts').Engine} Engine */

const args = process.argv.slice(2);
const root = resolve(args.find((arg) => !arg.startsWith('-')) ?? join(import.meta.dirname, '..'));
const isVerbose = args.includes('--verbose');
const src = join(root, 'src');

/** @type {Call[]} */
let calls = [];
traceFunctions(src, (call) => calls.push(call));
const { compose } = await import(pathToFileURL(join(src, 'compose.ts')).href);

const home = mkdtempSync(join(tmpdir(), 'throughline-trace-'));
try {
  const start = () =>
    compose({
      home,
      settings: { agents: { helper: { adapter: 'scripted' } }, defaultAgent: 'helper' },
      // Nothing is to happen by the clock while the path is looked at.
      engine: { pollMs: 600_000, leaseMs: 600_000 },
    });
  /** @type {{ engine: Engine }} */
  const first = await start();
  await first.engine.ensure({ key: 'chat' });
  await prompt(first.engine);
  show('A prompt to a warm session', 'prompt', await prompt(first.engine));
  await first.engine.close({ graceMs: 5_000 });
  const second = await start();
  show('A cold prompt: the process was closed, its session is resumed', 'open', await prompt(second.engine));
  await second.engine.close({ graceMs: 5_000 });
} finally {
  rmSync(home, { recursive: true, force: true });
}
showSizes();

/**
 * Submits a prompt when all is quiet, and waits until it has ended and its session waits for the next one.
 * @param {Engine} engine
 * @returns {Promise<Call[]>} Every call since then.
 */
async function prompt(engine) {
  await wait(500);
  calls = [];
  const { turn } = await engine.submit('chat', '/say Hello.');
  while ((await engine.turn(turn.id)).state !== 'completed') await wait(50);
  await wait(500);
  return calls;
}

/** @param {string} title @param {'open' | 'prompt'} verb The agent's function that the path leads to. @param {Call[]} all */
function show(title, verb, all) {
  const from = all.find(({ fn }) => fn.name === 'submit' && fn.file === 'engine/engine.ts');
  const to = all.find(({ fn }) => fn.name === verb && fn.file.startsWith('agents/scripted/'));
  if (!from || !to) throw new Error(`The trace has no call of ${from ? verb : 'submit'}.`);
  const between = all.filter(({ at }) => at >= from.at && at < to.at);
  const inEngine = between.filter(isOfEngine);
  const path = pathBetween(from, to, between).filter(isOfEngine);
  console.log(`\n${title}`);
  row(`calls on the path to \`${verb}\``, path.length);
  row('  engine files on the path', distinct(path.map(fileOf)));
  row(`engine files entered before \`${verb}\``, distinct(inEngine.map(fileOf)));
  row('  files of src/', distinct(between.map(fileOf)));
  row('  engine functions', distinct(inEngine.map(({ fn }) => fn)));
  row('engine files entered by the whole turn', distinct(all.filter(isOfEngine).map(fileOf)));
  row('  files of src/', distinct(all.map(fileOf)));
  if (isVerbose) for (const { fn } of path) console.log(`    ${fn.file}:${fn.line} ${fn.name}`);
  if (isVerbose) for (const file of new Set(inEngine.map(fileOf))) console.log(`    ${file}`);
}

/**
 * The calls that one follows from the first to the last: those which led to the last one. A call that waited since before the
 * prompt, and was only woken by it, did not come from the first: then also the longest way down from the first, which is
 * how the prompt reached whoever waited.
 * @param {Call} from @param {Call} to @param {Call[]} between
 */
function pathBetween(from, to, between) {
  const back = wayUp(to).filter(({ at }) => at >= from.at && at < to.at);
  if (back.includes(from)) return back;
  const down = between.map(wayUp).filter((way) => way.includes(from));
  const longest = down.reduce((most, way) => (way.length > most.length ? way : most), []);
  return [...longest.filter(({ at }) => at >= from.at), ...back];
}

/** The call itself and those that led to it, the outermost first. @param {Call} call @returns {Call[]} */
function wayUp(call) {
  return call.parent ? [...wayUp(call.parent), call] : [call];
}

function showSizes() {
  const files = readdirSync(src, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts'))
    .map((path) => ({ path, text: readFileSync(join(src, path), 'utf8') }));
  const isTest = (/** @type {{ path: string }} */ { path }) => path.endsWith('.test.ts');
  const own = files.filter((file) => !isTest(file));
  const functions = own.flatMap(({ path, text }) => functionsIn(path, text));
  const largest = functions.reduce((most, fn) => (fn.lines > most.lines ? fn : most));
  const lines = (/** @type {{ text: string }[]} */ some) => some.reduce((sum, { text }) => sum + lineCount(text), 0);
  console.log('\nThe sources, tests apart');
  row('files', own.length);
  row('files below 50 lines', own.filter(({ text }) => lineCount(text) < 50).length);
  row('lines', lines(own));
  row('lines, tests included', lines(files));
  row('lines of the largest function', `${largest.lines} (${largest.file} ${largest.name})`);
  if (!isVerbose) return;
  for (const { lines, file, name } of functions.toSorted((a, b) => b.lines - a.lines).slice(0, 15)) {
    console.log(`    ${lines} ${file} ${name}`);
  }
}

/** @param {Call} call */
function isOfEngine({ fn }) {
  return fn.file.startsWith('engine/');
}

/** @param {Call} call */
function fileOf({ fn }) {
  return fn.file;
}

/** @param {readonly unknown[]} values */
function distinct(values) {
  return new Set(values).size;
}

/** @param {string} text */
function lineCount(text) {
  return text.split('\n').length - 1;
}

/** @param {string} what @param {number | string} value */
function row(what, value) {
  console.log(`  ${what.padEnd(42)}${value}`);
}
