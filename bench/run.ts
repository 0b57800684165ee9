// `npm run bench`: measures Throughline, each measure in its own process, and compares the results with the targets.
//
//   npm run bench                       everything
//   npm run bench -- turn-overhead      only the named measures
//   npm run bench -- --help             lists them
//   npm run bench -- --check            exit code 1 when a must is missed
//   npm run bench -- --quick            small sizes: to test that it works
//   npm run bench -- --save             also writes RESULTS.md
//
// Times differ between machines and from hour to hour. So ratios are computed within one run, from measurements that alternate.
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { arch, cpus, loadavg, platform } from 'node:os';
import { fileURLToPath } from 'node:url';
import { type Finding, isReached } from './finding.ts';
import { asText, type Machine, resultsPage } from './table.ts';

/** In the order of the table: the most important first. */
const MEASURES = [
  'turn-overhead',
  'flat-cost',
  'events',
  'pages',
  'page-size',
  'timeline',
  'plan',
  'in-flight',
  'send',
  'throughput',
  'bell',
  'postgres',
  'postgres-load',
  'postgres-queues',
  'postgres-servers',
  'postgres-langgraph',
  'restore',
  'task-turn',
  'task-queue',
  'http-overhead',
  'http-client',
  'http-accept',
  'http-burst',
  'http-readers',
  'held',
  'claude-warm',
  'claude-restore',
  'claude-ssh',
  'claude-memory',
  'acp',
  'sandboxes',
];

const args = process.argv.slice(2);
const flags = new Set(args.filter((arg) => arg.startsWith('--')));
const words = args.filter((arg) => !arg.startsWith('--'));
const here = (name: string) => fileURLToPath(new URL(name, import.meta.url));

const unknown = [
  ...words.filter((word) => !MEASURES.includes(word)),
  ...[...flags].filter((flag) => !['--check', '--quick', '--save', '--help'].includes(flag)),
];
if (flags.has('--help') || unknown.length > 0) {
  if (unknown.length > 0) console.error(`Not known: ${unknown.join(', ')}.`);
  const usage = 'npm run bench -- [MEASURE …] [--quick] [--check] [--save]';
  const meaning = '--quick: small sizes; --check: exit code 1 when a must is missed; --save: also writes RESULTS.md';
  console.log(`${usage}\n${meaning}\nMeasures, all of them if none is named: ${MEASURES.join(', ')}.`);
  process.exit(unknown.length > 0 ? 2 : 0);
}
const chosen = MEASURES.filter((name) => words.length === 0 || words.includes(name));
if (chosen.some((name) => name.startsWith('postgres'))) {
  // The servers and the queues that it is compared with. If they cannot be installed, their measures fail, and say so.
  spawnSync(process.execPath, [here('../scripts/setup.js'), 'test/postgres', 'bench/postgres'], { stdio: 'inherit' });
}

const findings: Finding[] = [];
const broken: string[] = [];
const load = [loadavg()[0] ?? 0];
for (const name of chosen) {
  process.stderr.write(`${name} … `);
  const start = performance.now();
  const found = run(name);
  process.stderr.write(
    `${found === null ? 'FAILED' : 'done'} in ${((performance.now() - start) / 1_000).toFixed(0)} s\n`,
  );
  if (found === null) broken.push(name);
  else findings.push(...found);
  load.push(loadavg()[0] ?? 0);
}

const machine: Machine = {
  cores: cpus().length,
  system: `${platform()} ${arch()}`,
  node: process.versions.node,
  load: [Math.min(...load), Math.max(...load)],
};
console.log(asText(findings, machine));
writeFileSync(here('results.json'), `${JSON.stringify({ machine, findings }, null, 2)}\n`);
if (flags.has('--save')) writeFileSync(here('RESULTS.md'), resultsPage(findings, machine));

const missed = findings.filter((finding) => finding.target?.kind === 'must' && !isReached(finding));
if (broken.length > 0 || (flags.has('--check') && missed.length > 0)) process.exitCode = 1;

/** Runs a measure in a new process, so that the measures before it have no effect on it. Null: it failed. */
function run(name: string): Finding[] | null {
  const { status, stdout } = spawnSync(
    process.execPath,
    [here('one.ts'), name, flags.has('--quick') ? 'quick' : 'full'],
    { stdio: ['ignore', 'pipe', 'inherit'], encoding: 'utf8' },
  );
  return status === 0 ? JSON.parse(stdout.trim().split('\n').at(-1) ?? '') : null;
}
