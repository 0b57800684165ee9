import { execFileSync } from 'node:child_process';
import { existsSync, globSync, readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join, sep } from 'node:path';
import { describe, expect, test } from 'vitest';
import { faultsOfTime, usesOfTime } from './architecture/clock-rules.ts';
import { importCycles } from './architecture/cycles.ts';
import { faultsOfDecisions } from './architecture/decisions.ts';
import { faultsOfEngineFolders, meaninglessFolders } from './architecture/folders.ts';
import { brokenImportRules } from './architecture/import-rules.ts';
import { faultsOfRules, rulesIn, unknownRules } from './architecture/invariants.ts';
import { longFunctions } from './architecture/long-functions.ts';
import { isTest } from './architecture/outline.ts';
import { brokenPageImports, unsafeMarkup } from './architecture/page-rules.ts';
import { changeRequests, pairsBeforeAndAfter, pathsIn } from './architecture/paths.ts';
import { replacedWords } from './architecture/plain-words.ts';
import { impurities, runtimeCode } from './architecture/purity.ts';
import { faultsOfHostUses, usesOfHost } from './architecture/sandbox-rules.ts';
import { straySmallFiles } from './architecture/small-files.ts';

const root = dirname(import.meta.dirname);
const read = (path: string) => readFileSync(join(root, path), 'utf8');

/** Every TypeScript file of src/, relative to it, with its text. */
const sources = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
  .filter((path) => path.endsWith('.ts'))
  .map((path) => [path.split(sep).join('/'), read(join('src', path))] as const);
const sourcesOf = (folder: string) => sources.filter(([path]) => path.startsWith(`${folder}/`) && !isTest(path));

/** Every violation of a rule in the files, one line each, so that a failure shows all of them. */
const report = (files: typeof sources, rule: (path: string, source: string) => string[]) =>
  files.flatMap(([path, source]) => rule(path, source).map((violation) => `${path}: ${violation}`));

describe('src', () => {
  test('is written in TypeScript, as the page is, because the rules look only at that', () => {
    const scripts = globSync('{src,web/src}/**/*.{js,jsx,mjs,cjs,mts,cts}', { cwd: root });
    // The scripted agent is no part of the program.
    const others = scripts.filter((path) => !path.split(sep).join('/').startsWith('src/agents/scripted/'));
    expect(others).toEqual([]);
  });

  test('imports only what the layout allows', () => {
    expect(report(sources, brokenImportRules)).toEqual([]);
  });

  test('agents, engine and tasks use sandboxes, and not the machine that Throughline runs on', () => {
    expect(faultsOfHostUses(sources)).toEqual([]);
  });

  test('the time comes from the clock, except where a reason is given', () => {
    expect(faultsOfTime(sources)).toEqual([]);
  });

  test('core is pure', () => {
    expect(report(sourcesOf('core'), impurities)).toEqual([]);
  });

  test('ports holds no code', () => {
    expect(report(sourcesOf('ports'), runtimeCode)).toEqual([]);
  });
});

/** Every TypeScript file of the page, relative to the checkout, with its text. */
const pageSources = globSync('web/src/**/*.{ts,tsx}', { cwd: root })
  .map((path) => path.split(sep).join('/'))
  .map((path) => [path, read(path)] as const);

describe('the page', () => {
  const own = pageSources.filter(([path]) => !isTest(path));

  test('imports its packages, the client and core only', () => {
    expect(own.length).toBeGreaterThan(10);
    expect(report(pageSources, brokenPageImports)).toEqual([]);
  });

  test('turns no text into markup or code', () => {
    expect(report(own, unsafeMarkup)).toEqual([]);
  });

  test('follows the rules of src: no circular imports, no folder with a meaningless name, short functions', () => {
    const cycles = importCycles(own);
    expect(cycles.map((cycle) => cycle.join(' → '))).toEqual([]);
    const paths = own.map(([path]) => path);
    expect(meaninglessFolders(paths)).toEqual([]);
    expect(report(own, longFunctions)).toEqual([]);
    // A small file may stand alone if it is loaded later, or if it has its own test: that test then loads no views.
    const all = pageSources.map(([, source]) => source).join('\n');
    const hasTest = (path: string) => pageSources.some(([each]) => each === path.replace(/\.tsx?$/, '.test.ts'));
    const standsAlone = (path: string) => hasTest(path) || all.includes(`import('./${basename(path)}')`);
    expect(straySmallFiles(pageSources, standsAlone)).toEqual([]);
  });
});

describe('a reader', () => {
  test('finds no circular imports, types included', () => {
    const cycles = importCycles(sources.filter(([path]) => !isTest(path)));
    expect(cycles.map((cycle) => cycle.join(' → '))).toEqual([]);
  });

  test('finds no folder with a meaningless name', () => {
    expect(meaninglessFolders(sources.map(([path]) => path))).toEqual([]);
  });

  test('finds in ARCHITECTURE.md which file of each folder of the engine to read first', () => {
    const paths = sources.map(([path]) => path);
    expect(faultsOfEngineFolders(read('ARCHITECTURE.md'), paths)).toEqual([]);
  });

  test('reads every function on one screen', () => {
    const own = sources.filter(([path]) => !isTest(path));
    expect(report(own, longFunctions)).toEqual([]);
  });

  test('finds no small file that belongs into the file that imports it', () => {
    // Migrations, commands and the special cases of one agent are found by their names.
    const standsAlone = (path: string) =>
      /\/migrations\/\d{4}-|^faces\/cli\/commands\/|^agents\/acp\/known\//.test(path);
    expect(straySmallFiles(sources, standsAlone)).toEqual([]);
  });

  test('finds in INVARIANTS.md every rule that is cited, with tests that exist', () => {
    const rules = rulesIn(read('INVARIANTS.md'));
    expect(rules.map(({ id }) => id)).toEqual(Array.from({ length: 10 }, (_, index) => `R${index + 1}`));
    expect(faultsOfRules(rules, testFiles())).toEqual([]);
    expect(citingFiles()).toEqual(expect.arrayContaining(['src/core/turn/turn.ts', 'web/src/main.tsx']));
    const cited = citingFiles().flatMap((path) => unknownRules(read(path), rules).map((id) => `${path} cites ${id}`));
    expect(cited).toEqual([]);
  });

  test.each(globSync(['*.md', 'docs/*.md'], { cwd: root }))('finds every file that %s names', (document) => {
    const exists = (path: string) => existsSync(join(root, path)) || existsSync(join(root, dirname(document), path));
    expect(pathsIn(read(document)).filter((path) => !exists(path))).toEqual([]);
  });

  test('finds in CONTRIBUTING.md where to make at least ten kinds of change', () => {
    const requests = changeRequests(read('CONTRIBUTING.md'));
    expect(requests.length).toBeGreaterThanOrEqual(10);
    expect(requests.filter(({ paths }) => paths.length === 0)).toEqual([]);
    const missing = requests.flatMap(({ question, paths }) =>
      paths.filter((path) => !existsSync(join(root, path))).map((path) => `${question} ${path}`),
    );
    expect(missing).toEqual([]);
  });

  test('finds in CONTRIBUTING.md at least twenty examples of rewritten sentences', () => {
    expect(pairsBeforeAndAfter(read('CONTRIBUTING.md'))).toBeGreaterThanOrEqual(20);
  });

  test('finds no word that was replaced by a plain one (CONTRIBUTING.md, Plain English)', () => {
    const files = filesIn('{*,{src,web,test,docs,bench,examples,scripts}/**/*}.{ts,tsx,js,mjs,md,py}')
      .filter((path) => !path.startsWith('test/architecture/plain-words'))
      .map((path) => [path, read(path)] as const);
    const paths = files.map(([path]) => path);
    expect(paths).toEqual(expect.arrayContaining(['README.md', 'docs/http.md', 'test/program.ts', 'web/src/main.tsx']));
    expect(report(files, replacedWords)).toEqual([]);
  });

  test('finds every decision in the index, numbered without gaps', () => {
    const names = readdirSync(join(root, 'docs/decisions')).filter((name) => /^\d/.test(name));
    const decisions = names.map((name) => ({ name, text: read(`docs/decisions/${name}`) }));
    expect(faultsOfDecisions(decisions, read('docs/decisions/README.md'))).toEqual([]);
  });
});

describe('the import rule', () => {
  test.each([
    ['core/turn.ts', `import { readFile } from 'node:fs'`, 'core imports node:fs'],
    ['core/turn.ts', `import type { Command } from 'commander'`, 'core imports commander'],
    ['core/turn.ts', `import type { Store } from '../ports/store.ts'`, 'core imports ports'],
    ['core/turn.ts', `import { inPages } from '../flow/pages.ts'`, 'core imports flow'],
    ['flow/pages.ts', `import type { Store } from '../ports/store.ts'`, 'flow imports ports'],
    ['flow/pages.ts', `import 'node:fs'`, 'flow imports node:fs'],
    ['ports/store.ts', `export type { Db } from '../stores/sqlite/db.ts'`, 'ports imports stores/sqlite'],
    ['ports/clock.ts', `import type { Command } from 'commander'`, 'ports imports commander'],
    ['engine/worker.ts', `import { open } from '../stores/sqlite/store.ts'`, 'engine imports stores/sqlite'],
    ['engine/worker.ts', `const { open } = await import('../host/clock.ts')`, 'engine imports host'],
    ['engine/worker.ts', `type Turn = import('../wire/turn.ts').Turn`, 'engine imports wire'],
    ['tasks/task.ts', `import type { Engine } from '../engine/engine.ts'`, 'tasks imports engine'],
    ['stores/sqlite/store.ts', `import '../../leases/lease-keeper.ts'`, 'stores/sqlite imports leases'],
    ['leases/lease-keeper.ts', `import '../engine/parts.ts'`, 'leases imports engine'],
    ['stores/sqlite/store.ts', `import '../postgres/store.ts'`, 'stores/sqlite imports stores/postgres'],
    ['stores/sqlite/store.ts', `export * from '../../agents/acp/agent.ts'`, 'stores/sqlite imports agents/acp'],
    ['agents/shared/lines.ts', `import '../acp/agent.ts'`, 'agents/shared imports agents/acp'],
    ['agents/acp/agent.ts', `import '../claude/find.ts'`, 'agents/acp imports agents/claude'],
    ['engine/worker.ts', `import '../agents/shared/lines.ts'`, 'engine imports agents/shared'],
    ['faces/cli/send.ts', `import { compose } from '../../compose.ts'`, 'faces/cli imports compose.ts'],
    ['faces/cli/send.ts', `import { open } from 'throughline'`, 'faces/cli imports the package itself'],
    ['faces/cli/send.ts', `import '../../../test/help.ts'`, 'imports ../../../test/help.ts from outside of src'],
    ['faces/cli/send.ts', 'await import(name)', 'a computed import cannot be checked'],
    ['engine/worker.ts', `import { rows } from './worker.test.ts'`, 'imports ./worker.test.ts, which is a test'],
    ['wire/turn.ts', `import { Buffer } from 'buffer'`, 'wire runs in browsers and imports buffer'],
    ['wire/turn.ts', `import { Buffer } from 'node:buffer'`, 'wire runs in browsers and imports node:buffer'],
    ['testing/model.ts', `import type { Store } from '../ports/store.ts'`, 'testing imports ports'],
    ['testing/model.ts', `import { Hono } from 'hono'`, 'testing imports hono'],
    ['compose.ts', `import { startModel } from './testing/index.ts'`, 'compose.ts imports testing'],
    ['utils/text.ts', '', 'the folder utils is not part of the layout'],
    [
      'helpers.ts',
      '',
      'only compose.ts, compose-agents.ts, compose-credentials.ts, compose-sandboxes.ts, connect.ts, client.ts, serve.ts, backup.ts, demo.ts, bridge.ts, main.ts, index.ts lie at the top of src',
    ],
  ])('refuses in %s: %s', (path, source, why) => {
    expect(brokenImportRules(path, source)).toEqual([why]);
  });

  test.each([
    ['core/turn.ts', `import { fail } from './errors.ts'`],
    ['core/turn.test.ts', `import fc from 'fast-check'; import { test } from 'vitest'; import './turn.ts'`],
    ['ports/store.ts', `import type { Turn } from '../core/turn.ts'; import type { Clock } from './clock.ts'`],
    ['ports/sandbox.ts', `import type { Readable } from 'node:stream'`],
    ['engine/worker.ts', `import { plan } from '../core/plan.ts'; import type { Store } from '../ports/store.ts'`],
    ['tasks/runner.ts', `import { LeaseKeeper } from '../leases/lease-keeper.ts'`],
    ['stores/sqlite/store.ts', `import { DatabaseSync } from 'node:sqlite'; import './migrations/list.ts'`],
    ['agents/claude/cli/process.ts', `import { LineReader } from '../../shared/lines.ts'`],
    ['agents/claude/sdk/agent.ts', `import { read } from '../transcript/read.ts'`],
    ['clients/http/client.ts', `import { turn } from '../../wire/turn.ts'`],
    ['faces/http/server.ts', `import { turn } from '../../wire/turn.ts'`],
    ['testing/model.ts', `import { createServer } from 'node:http'; import { text } from '../core/content.ts'`],
    ['agents/claude/sdk/agent.test.ts', `import { startModel } from '../../../testing/index.ts'`],
    ['demo.ts', `const { startModel } = await import('./testing/index.ts')`],
    ['compose.ts', `const store = await import('./stores/sqlite/store.ts'); import './engine/engine.ts'`],
  ])('allows in %s: %s', (path, source) => {
    expect(brokenImportRules(path, source)).toEqual([]);
  });
});

describe('the sandbox rule', () => {
  test.each([
    ['agents/x/read.ts', "import { readFile } from 'node:fs/promises'", ['node:fs']],
    [
      'engine/x.ts',
      "import type { Stats } from 'fs'; await import('node:child_process')",
      ['node:child_process', 'node:fs'],
    ],
    ['agents/x/read.ts', "import { homedir } from 'node:os'; import { join } from 'node:path'", ['node:os']],
    [
      'agents/x/read.ts',
      "import { createServer } from 'node:net'; import { Worker } from 'worker_threads'",
      ['node:net', 'node:worker_threads'],
    ],
    ['tasks/x.ts', "import { posix } from 'node:path'; import { randomUUID } from 'node:crypto'", []],
    ['tasks/x.ts', "import { posix, resolve } from 'node:path'", ['node:path']],
    ['engine/x.ts', "import path from 'node:path'", ['node:path']],
    ['engine/x.ts', 'const at = process.cwd()', ['process.cwd']],
    ['engine/x.ts', "process['cwd'](); globalThis.process.chdir(at)", ['process.chdir', 'process.cwd']],
    ['engine/x.ts', "const { readFileSync } = process.getBuiltinModule('node:fs')", ['process.getBuiltinModule']],
    ['engine/x.ts', 'const { cwd } = process; const { process: ours } = globalThis', ['process.*', 'process.cwd']],
    ['engine/x.ts', "import { cwd } from 'node:process'", ['process.cwd']],
    ['engine/x.ts', 'const ours = process; const own = process[name]', ['process.*']],
    ['engine/x.ts', 'const all = globalThis; process.nextTick(end)', ['globalThis']],
    ['engine/x.ts', 'const end = (process: SandboxProcess) => process.kill(); type A = typeof process', []],
    ['sandboxes/x/open.ts', "import 'node:fs'; process.cwd()", []],
    ['agents/x/read.test.ts', "import 'node:fs'; process.cwd()", []],
  ])('finds what %s uses of this machine: %s', (path, source, found) => {
    expect(usesOfHost(path, source)).toEqual(found);
  });

  test('reports each use that is not named, also in a file with other uses, and each name without a use', () => {
    const faults = faultsOfHostUses([['engine/starts.ts', "import 'node:os'; import 'node:fs'"]]);
    expect(faults).toContain('engine/starts.ts uses node:fs, and not a sandbox');
    expect(faults).not.toContain('engine/starts.ts uses node:os, and not a sandbox');
    expect(faults).toContain('tasks/task-file.ts is named for node:fs, and does not use it');
  });
});

describe('the clock rule', () => {
  test.each<[string, string, string[]]>([
    ['engine/x.ts', 'const at = Date.now()', ['wall']],
    ['engine/x.ts', 'const { at = Date.now } = options', ['wall']],
    ['engine/x.ts', 'const at = new Date()', ['wall']],
    ['engine/x.ts', 'const at = Date(0)', ['wall']],
    ['engine/x.ts', 'const { now } = Date', ['wall']],
    ['engine/x.ts', "const at = Date['now']()", ['wall']],
    ['engine/x.ts', 'const Clock = Date', ['wall']],
    ['engine/x.ts', 'const start = performance.now(), end = performance.now()', ['elapsed']],
    ['engine/x.ts', 'const { now } = performance', ['elapsed']],
    ['engine/x.ts', "const at = performance['now']()", ['elapsed']],
    ['engine/x.ts', 'const at = globalThis.performance.now()', ['elapsed']],
    ['engine/x.ts', "import { performance as p } from 'node:perf_hooks'", ['elapsed']],
    ['engine/x.ts', 'const at = process.hrtime()', ['elapsed']],
    ['engine/x.ts', 'const at = process.hrtime.bigint()', ['elapsed']],
    ['engine/x.ts', 'const { uptime } = process', ['elapsed']],
    ['engine/x.ts', "import { hrtime } from 'node:process'", ['elapsed']],
    ['engine/x.ts', 'function f(performance: P) { return performance.now() } performance.now()', ['elapsed']],
    ['engine/x.ts', 'new Date(0); parts.clock.now(); clock.monotonic() // Date.now', []],
    ['engine/x.ts', 'Date.parse(text); Date.UTC(1, 1); const isDate = (at: Date) => at instanceof Date', []],
    ['engine/x.ts', 'process.env.HOME; const f = ({ performance }: P) => performance.now()', []],
    ['host/x.ts', 'const at = Date.now()', []],
    ['engine/x.test.ts', 'const at = Date.now()', []],
  ])('finds how %s reads the time: %s', (path, source, found) => {
    expect(usesOfTime(path, source)).toEqual(found);
  });

  test('reports a file that is not named, and a name without a file', () => {
    const faults = faultsOfTime([['engine/x.ts', 'Date.now() - performance.now()']]);
    expect(faults).toContain('engine/x.ts reads the time of day, and does not use the clock');
    expect(faults).toContain('engine/x.ts measures time, and does not use the clock');
    expect(faults).toContain('clients/http/tracker.ts is named, but nothing in it measures time');
  });
});

describe('the purity rule', () => {
  test.each([
    ['Date', 'const at = Date.now()'],
    ['Date', 'const at = new Date()'],
    ['Date', 'const at = Date()'],
    ['Date', 'const at = Date(0)'],
    ['Date', `const { now } = Date`],
    ['Math.random', 'const { length } = [Math.random]'],
    ['Math.random', `const at = Math['random']()`],
    ['Math.random', 'const { random } = Math'],
    ['Math.random', 'const all = Math'],
    ['process', 'export const home = () => process.env.HOME'],
    ['process', 'const found = { at: process }'],
    ['process', 'function end(process: Process) { stop() } const home = process.env.HOME'],
    ['process', 'if (on) { const process = 1 } process.exit()'],
    ['process', 'type process = number; export const at = process'],
    ['process', `import type { process } from './x.ts'; export const at = process`],
    ['process', 'declare const process: { cwd(): string }; export const at = process.cwd()'],
    ['process', 'export { process }'],
    ['crypto', 'export const id = (random = crypto) => random.randomUUID()'],
    ['setTimeout', 'setTimeout(() => {}, 1)'],
    ['fetch', 'fetch(url)'],
    ['navigator', 'const cores = navigator.hardwareConcurrency'],
    ['async', 'export async function* pages() {}'],
    ['async', 'const one = await all[0]'],
    ['Promise', 'export const done = Promise.resolve()'],
    ['performance', 'performance.now()'],
    ['console', 'console.log(1)'],
    ['globalThis', 'const all = globalThis'],
    ['import.meta', 'const here = import.meta.url'],
    ['process', `globalThis['process']`],
  ])('finds %s in: %s', (name, source) => {
    const ofCore = `import { all, on, options, stop, url } from './f.ts'; ${source}`;
    expect(impurities('core/x.ts', ofCore)).toEqual([name]);
  });

  test.each([
    'const at = new Date(0).toISOString()',
    'type Sent = { process: number }; const pid = (sent: Sent) => sent.process',
    'export const same = ({ process }: Sent) => ({ process, fetch: 1 })',
    'function end(process: Process): void { stop(process) }',
    'const lock = ({ process: { pid }, ...fetch }: Row, [crypto]: Keys) => [pid, fetch, crypto]',
    `import { performance } from './x.ts'; performance.now()`,
    'try { f() } catch (process) { g(process) }',
    'class process {} new process(); const f = function fetch() { return fetch }',
    'type Ours = typeof process; interface Sent extends process {}',
    `const word = 'process'; // console`,
  ])('finds nothing in: %s', (source) => {
    const ofCore = `import { f, g, stop } from './f.ts'; ${source}`;
    expect(impurities('core/x.ts', ofCore)).toEqual([]);
  });

  test('finds code in a port, and ignores types and empty exports', () => {
    const types = `import type { A } from './a.ts'; export type { B } from './b.ts'; export interface C { a: A } export {};`;
    expect(runtimeCode('ports/x.ts', types)).toEqual([]);
    expect(runtimeCode('ports/x.ts', 'export const limit: number = 1;')).toEqual(['export const limit         = 1;']);
    expect(runtimeCode('ports/x.ts', `import { type A } from './a.ts';`)).toHaveLength(1);
  });
});

test('every npm script installs the packages first, so that it works in a fresh clone', () => {
  const { scripts }: { scripts: Record<string, string> } = JSON.parse(read('package.json'));
  const names = Object.keys(scripts).filter((name) => !/^(pre|post)/.test(name));
  expect(names).toEqual(expect.arrayContaining(['start', 'test', 'lint']));
  expect(names.filter((name) => !scripts[`pre${name}`]?.startsWith('node scripts/setup.js'))).toEqual([]);
});

describe('tracked files', () => {
  const locks = globSync(['package-lock.json', 'test/*/package-lock.json', 'bench/*/package-lock.json'], { cwd: root });

  test('include the lock files of the project and of its tests', () => {
    expect(locks.map((path) => path.split(sep).join('/'))).toEqual(
      expect.arrayContaining(['package-lock.json', 'test/agents/package-lock.json', 'test/browser/package-lock.json']),
    );
  });

  test.each(locks)('%s names no download addresses', (lock) => {
    expect(read(lock)).not.toMatch(/"resolved"|https?:\/\/[^"]*\.tgz/);
  });

  test.each(locks)(
    '%s has the packages of every platform, because otherwise `npm ci` fails on all platforms',
    (lock) => {
      const packages: Record<string, { optionalDependencies?: object }> = JSON.parse(read(lock)).packages;
      const missing = Object.entries(packages).flatMap(([path, { optionalDependencies = {} }]) =>
        Object.keys(optionalDependencies).filter((name) => {
          return !packages[`${path}/node_modules/${name}`] && !packages[`node_modules/${name}`];
        }),
      );
      expect(missing).toEqual([]);
    },
  );

  test('contain no path of the machine that they were written on', (context) => {
    const files = trackedFiles();
    if (files.length === 0) context.skip('this is not a git checkout');
    const parent = dirname(root);
    const siblings = parent === dirname(parent) ? [] : readdirSync(parent);
    // A sibling folder counts only as a whole path, so that /tmp/a is not found in /tmp/agents.
    const paths = [root, ...siblings.map((name) => join(parent, name))].map((path) => RegExp.escape(path));
    const pattern = new RegExp(`(?<![\\w.-])(${paths.join('|')})(?![\\w.-])`);
    expect(files.filter((file) => pattern.test(read(file)))).toEqual([]);
  });
});

/** Every file that may cite a rule: sources, tests, documents. Without the tests of citations, which cite rules that do not exist. */
function citingFiles(): string[] {
  return filesIn('{*,{bin,src,web,test,docs,bench,examples,scripts}/**/*}.{ts,tsx,js,mjs,md}').filter(
    (path) => path !== 'test/architecture/invariants.test.ts',
  );
}

/** The files of a pattern, without those of packages. */
function filesIn(pattern: string): string[] {
  const paths = globSync(pattern, { cwd: root, exclude: (path) => basename(path) === 'node_modules' });
  return paths.map((path) => path.split(sep).join('/'));
}

/** Every TypeScript file that has tests, or is imported by tests, with its text. */
function testFiles(): Map<string, string> {
  const pattern = '{src/**/*.test.ts,web/**/*.test.ts,test/**/*.ts}';
  const paths = globSync(pattern, { cwd: root, exclude: (path) => basename(path) === 'node_modules' });
  return new Map(paths.map((path) => [path.split(sep).join('/'), read(path)]));
}

function trackedFiles(): string[] {
  const paths = git('ls-files', '-z')?.split('\0') ?? [];
  return paths.filter((path) => path !== '' && existsSync(join(root, path)));
}

/** What a command of git prints; null: this is not a git checkout. */
function git(...args: string[]): string | null {
  try {
    return execFileSync('git', args, { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
  } catch {
    return null;
  }
}
