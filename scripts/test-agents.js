// `npm run test:agents`: agents that speak ACP, each installed in a folder of its own, go through the scenarios that Claude's and
// Codex's ACP programs go through in `npm run test:all`. Their model is the stand-in: no network, no key.
//
//   npm run test:agents                    all of them
//   npm run test:agents -- goose gemini    only these; of the others, the table keeps what was found before
//
// The results are kept in test/acp-agents/results.json, and shown in the table of docs/acp-agents.md. Ends with 1 when a scenario failed.
// An agent that cannot be installed is reported, but is no failure.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ACP_AGENTS, versionOf } from '../test/acp-agents/agents.ts';
import { install } from '../test/acp-agents/install.ts';
import { tableOf, withTable } from '../test/acp-agents/table.ts';

/** @typedef {import('../test/acp-agents/table.ts').Tried} Tried */

const at = (/** @type {string} */ path) => fileURLToPath(new URL(`../${path}`, import.meta.url));
/** Normally all scenarios of an agent together end well before this limit. It ends those that hang. */
const LIMIT_MS = 2_400_000;

const named = process.argv.slice(2);
for (const name of named) {
  if (name in ACP_AGENTS) continue;
  console.error(`Unknown agent: ${name}. Known agents: ${Object.keys(ACP_AGENTS).join(', ')}.`);
  process.exit(2);
}

const tried = (named.length > 0 ? named : Object.keys(ACP_AGENTS)).map(tryOut);
keep(tried);
console.log(`\n${tableOf(tried)}`);
process.exitCode = tried.some(({ results }) => Object.values(results).some((failure) => failure !== null)) ? 1 : 0;

/**
 * Writes the results. Called after all agents were tried, so that an interrupted run changes nothing.
 * @param {readonly Tried[]} tried
 */
function keep(tried) {
  const file = at('test/acp-agents/results.json');
  /** @type {Tried[]} */
  const before = JSON.parse(readFileSync(file, 'utf8'));
  const all = Object.keys(ACP_AGENTS).flatMap(
    (name) => [...tried, ...before].find(({ agent }) => agent === name) ?? [],
  );
  writeFileSync(file, `${JSON.stringify(all, null, 2)}\n`);
  writeFileSync(at('docs/acp-agents.md'), withTable(readFileSync(at('docs/acp-agents.md'), 'utf8'), tableOf(all)));
}

/**
 * @param {string} agent
 * @returns {Tried}
 */
function tryOut(agent) {
  const version = versionOf(ACP_AGENTS[agent] ?? { packages: {} });
  console.log(`\n== ${agent} ${version}`);
  const notInstallable = install(agent);
  if (notInstallable !== null) console.log(`not installable: ${notInstallable}`);
  return { agent, version, notInstallable, results: notInstallable === null ? resultsOf(agent) : {} };
}

/**
 * @param {string} agent
 * @returns {Tried['results']}
 */
function resultsOf(agent) {
  const folder = mkdtempSync(join(tmpdir(), 'throughline-test-agents-'));
  const file = join(folder, 'report.json');
  try {
    const reporters = ['--reporter=verbose', '--reporter=json', `--outputFile.json=${file}`];
    const config = `--config=${at('test/acp-agents/vitest.config.ts')}`;
    spawnSync(process.execPath, [at('node_modules/vitest/vitest.mjs'), 'run', config, ...reporters], {
      cwd: at('.'),
      env: { ...process.env, THROUGHLINE_ACP_AGENT: agent },
      stdio: ['ignore', 'inherit', 'inherit'],
      timeout: LIMIT_MS,
    });
    return read(file);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/**
 * @param {string} file
 * @returns {Tried['results']}
 */
function read(file) {
  /** @type {{ testResults: { message?: string, assertionResults: { title: string, status: string, failureMessages: string[] }[] }[] }} */
  const { testResults } = JSON.parse(readFileSync(file, 'utf8'));
  const tests = testResults.flatMap(({ assertionResults }) => assertionResults);
  // If no test ran, the agent was not tried. That is a fault of the tests, not a result.
  if (tests.length === 0) throw new Error(`no scenario ran: ${testResults[0]?.message ?? 'unknown reason'}`);
  return Object.fromEntries(
    tests.map(({ title, status, failureMessages: [why = status] }) => [title, status === 'passed' ? null : brief(why)]),
  );
}

/** @param {string} failure */
function brief(failure) {
  const [first = ''] = failure.split('\n');
  return first.length > 160 ? `${first.slice(0, 160)}…` : first;
}
