// `node scripts/trace-prompt.js [CHECKOUT]`: counts what a reader has to follow from a prompt to the agent, in a trace of a real run with
// the scripted agent. CONTRIBUTING.md describes how it counts, and has the results.
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
const RUNS = 4;

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
      // No timer may fire during the trace.
      engine: { pollMs: 600_000, leaseMs: 600_000 },
    });
  /** @type {Call[][]} */
  const warm = [];
  /** @type {Call[][]} */
  const cold = [];
  for (let run = 0; run <= RUNS; run += 1) {
    /** @type {{ engine: Engine }} */
    const { engine } = await start();
    await engine.ensure({ key: 'chat' });
    const opened = await prompt(engine);
    // The very first prompt has no history, and no session to resume.
    if (run > 0) cold.push(opened);
    if (run > 0) warm.push(await prompt(engine));
    await engine.close({ graceMs: 5_000 });
  }
  show('A cold prompt: the process has just started, and the session is resumed', 'open', cold);
  show('A warm prompt: the agent is kept from the prompt before', 'prompt', warm);
} finally {
  rmSync(home, { recursive: true, force: true });
}
showSizes();

/**
 * Submits a prompt when the engine is idle, and waits until the turn has ended and its session waits for the next prompt.
 * @param {Engine} engine
 * @returns {Promise<Call[]>} All calls during that time.
 */
async function prompt(engine) {
  await wait(500);
  calls = [];
  const { turn } = await engine.submit('chat', '/say Hello.');
  // Reading a turn runs other code of the engine. So the first read is after a wait that is longer than the turn.
  do await wait(500);
  while ((await engine.turn(turn.id)).state !== 'completed');
  return [...calls];
}

/**
 * Prints the minimum of each figure over all runs, because timers (the check for a cancel) do not fire in every run.
 * @param {string} title @param {'open' | 'prompt'} verb The agent's function that the path leads to. @param {Call[][]} runs
 */
function show(title, verb, runs) {
  console.log(`\n${title}`);
  const measured = runs.map((calls) => measure(verb, calls));
  for (const [index, [what]] of (measured[0] ?? []).entries()) {
    row(what, Math.min(...measured.map((figures) => figures[index]?.[1] ?? Number.NaN)));
  }
  if (!isVerbose) return;
  const { path, entered } = between(verb, runs[0] ?? []);
  for (const { fn } of path) console.log(`    ${fn.file}:${fn.line} ${fn.name}`);
  console.log('  entered:');
  for (const file of new Set(entered.filter(isOfEngine).map(fileOf))) console.log(`    ${file}`);
}

/** @param {'open' | 'prompt'} verb @param {Call[]} all @returns {[string, number][]} */
function measure(verb, all) {
  const { path, entered } = between(verb, all);
  const inEngine = entered.filter(isOfEngine);
  return [
    [`calls on the path to \`${verb}\``, path.length],
    ['  engine files on the path', distinct(path.map(fileOf))],
    [`engine files entered before \`${verb}\``, distinct(inEngine.map(fileOf))],
    ['  files of src/', distinct(entered.map(fileOf))],
    ['  engine functions', distinct(inEngine.map(({ fn }) => fn))],
    ['engine files entered by the whole turn', distinct(all.filter(isOfEngine).map(fileOf))],
    ['  files of src/', distinct(all.map(fileOf))],
  ];
}

/** All calls from `engine.submit` to the agent's function, and the path between the two. @param {string} verb @param {Call[]} all */
function between(verb, all) {
  const from = all.find(({ fn }) => fn.name === 'submit' && fn.file === 'engine/engine.ts');
  const to = all.find(({ fn }) => fn.name === verb && fn.file.startsWith('agents/scripted/'));
  if (!from || !to) throw new Error(`The trace has no call of ${from ? verb : 'submit'}.`);
  const entered = all.filter(({ at }) => at >= from.at && at < to.at);
  return { entered, path: pathBetween(from, to, entered).filter(isOfEngine) };
}

/**
 * The chain of calls from the first to the last. If the last one descends from a call that waited since before the prompt, that chain
 * does not include the first. Then the longest chain that starts at the first is added: it shows how the prompt woke the waiting call.
 * @param {Call} from @param {Call} to @param {Call[]} entered
 */
function pathBetween(from, to, entered) {
  const back = wayUp(to).filter(({ at }) => at >= from.at && at < to.at);
  if (back.includes(from)) return back;
  const down = entered.map(wayUp).filter((way) => way.includes(from));
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
