// Which test files run when, and how. All lists have the beginnings of paths. `test/areas.test.ts` checks that every test file is in an
// area, and that every path still exists.

/**
 * The areas of `npm test -- AREA`.
 * @type {Readonly<Record<string, readonly string[]>>}
 */
export const AREAS = {
  core: ['src/core/', 'src/flow/'],
  engine: ['src/engine/', 'src/leases/', 'test/e2e/engine/', 'test/e2e/stories/', 'test/model-based/engine'],
  store: [
    'src/stores/',
    'test/contracts/sqlite',
    'test/contracts/postgres',
    'test/e2e/postgres/',
    'test/model-based/store',
    'test/e2e/upgrades',
    'test/e2e/backup',
  ],
  agents: ['src/agents/', 'test/agents/', 'test/acp-agents/', 'test/contracts/scripted'],
  scripted: ['src/agents/scripted/', 'test/contracts/scripted'],
  claude: [
    'src/agents/claude/',
    'src/agents/shared/',
    'test/agents/claude/',
    'test/agents/sandboxes/claude-',
    'test/model/claude',
    'test/e2e/cli/demo-claude',
  ],
  acp: ['src/agents/acp/', 'src/agents/shared/', 'test/agents/acp/', 'test/acp-agents/'],
  http: ['src/faces/http/', 'src/wire/', 'test/e2e/http/'],
  client: ['src/clients/', 'test/e2e/client/'],
  browser: ['test/browser/', 'test/e2e/client/browser'],
  page: ['web/', 'src/faces/http/pages/', 'test/browser/page/', 'test/e2e/http/page', 'test/package/page'],
  cli: ['src/faces/cli/', 'test/e2e/cli/'],
  tasks: [
    'src/tasks/',
    'src/core/tasks/',
    'test/e2e/tasks/',
    'test/e2e/stories/tasks',
    'test/e2e/cli/tasks',
    'test/e2e/client/cli-tasks',
    'test/e2e/client/equal-tasks',
    'test/e2e/client/lost-tasks',
    'test/e2e/http/tasks',
    'test/faults/tasks/',
    'test/model-based/tasks',
    'test/agents/claude/tasks',
  ],
  library: ['src/library/', 'test/public-types', 'test/e2e/library-', 'test/e2e/examples', 'test/e2e/stories/tracker'],
  host: [
    'src/host/',
    'src/sandboxes/',
    'test/contracts/sandbox/',
    'test/vendors/',
    'src/doctor/',
    'test/e2e/cli/doctor',
  ],
  model: ['src/testing/', 'test/model/'],
  faults: ['test/faults/'],
  campaign: ['test/campaign/'],
  bench: ['test/bench'],
  random: ['test/model-based/'],
  docs: [
    'test/architecture',
    'test/areas',
    'test/cli-document',
    'test/http-api',
    'test/docs',
    'test/package/',
    'test/settings-schema',
    'test/acp-agents/',
    'test/e2e/examples',
  ],
};

/**
 * The parts in the table at the end of a run (scripts/test-parts.js). A file counts for the first part that it matches. Files that match
 * none are shown as "the rest".
 * @type {Readonly<Record<string, readonly string[]>>}
 */
export const PARTS = {
  database: [
    'src/stores/postgres/',
    'test/contracts/postgres',
    'test/e2e/postgres/',
    'test/faults/postgres/',
    'test/model-based/store-postgres',
    'test/agents/claude/servers/moved',
    'test/agents/claude/servers/two-servers',
  ],
  sandboxes: [
    'src/sandboxes/',
    'test/contracts/sandbox/',
    'test/vendors/',
    'test/agents/kill-series/',
    'test/agents/sandboxes/',
    'test/e2e/cli/sandboxes',
    'test/e2e/engine/sandboxes',
  ],
  browser: ['test/browser/'],
  'real agents': ['test/agents/', 'test/acp-agents/', 'test/model/claude', 'test/e2e/cli/demo-claude'],
};

/**
 * Files that get a process of their own: they mock a module, or change the environment of every program that they start. All other files
 * share a few processes, because to start one and load the sources takes about three seconds of processor time. They must restore what
 * they change; test/shared-process.ts checks it.
 */
export const ALONE = ['src/host/data-home', 'test/agents/kill-series/vendors'];

/**
 * Files whose temporary folders are on disk, and not in memory (scripts/test-folder.js). Memory is mounted in `/dev`, and isolated
 * programs have another `/dev`.
 */
export const ON_DISK = PARTS.sandboxes ?? [];

/**
 * What `npm test` leaves out, to take about two minutes on two cores. CONTRIBUTING.md says why: parts that need a database, a sandbox, a
 * browser or a real agent; tests that kill processes many times, reach the engine over a connection, send random requests, or start our
 * program or the scripted agent a hundred times; and tests that matter only for publishing.
 */
export const NOT_QUICK = [
  ...Object.values(PARTS).flat(),
  'src/agents/acp/connection/connection',
  'src/agents/scripted/misbehaviour',
  'test/bench',
  'test/campaign/',
  'test/contracts/scripted',
  'test/e2e/backup',
  'test/e2e/cli/',
  'test/e2e/client/',
  'test/e2e/engine/adopted',
  'test/e2e/engine/repeated-failures',
  'test/e2e/engine/several-processes',
  'test/e2e/engine/slots',
  'test/e2e/engine/trust',
  'test/e2e/engine/worktree',
  'test/e2e/examples',
  'test/e2e/http/agents',
  'test/e2e/http/bodies',
  'test/e2e/http/generated',
  'test/e2e/http/held',
  'test/e2e/http/operations',
  'test/e2e/http/security/authentication',
  'test/e2e/http/security/owners',
  'test/e2e/http/serve.',
  'test/e2e/http/sidecar',
  'test/e2e/http/slots',
  'test/e2e/http/streams',
  'test/e2e/http/traces',
  'test/e2e/stories/',
  'test/e2e/tasks/crash',
  'test/e2e/tasks/sessions',
  'test/e2e/upgrades',
  'test/faults/',
  'test/package/',
];

/**
 * What this run leaves out, as the beginnings of paths: `NOT_QUICK` for `npm test`, and the parts that `--without PART,PART` names.
 * @param {Readonly<Record<string, string | undefined>>} env
 * @returns {readonly string[]}
 */
export function leftOut({ THROUGHLINE_QUICK, THROUGHLINE_WITHOUT }) {
  const parts = THROUGHLINE_WITHOUT?.split(',') ?? [];
  return [...(THROUGHLINE_QUICK ? NOT_QUICK : []), ...parts.flatMap((part) => PARTS[part] ?? [])];
}

/**
 * What the end of `npm test` says of the tests that did not run.
 * @param {readonly string[]} files the paths of all tests
 * @returns {readonly string[]} lines
 */
export function leftOutInWords(files) {
  const rest = new Set(files.filter((file) => NOT_QUICK.some((start) => file.startsWith(start))));
  const all = rest.size;
  const counts = Object.entries(PARTS).map(([part, starts]) => {
    const found = [...rest].filter((file) => starts.some((start) => file.startsWith(start)));
    for (const file of found) rest.delete(file);
    return `${part} ${found.length}`;
  });
  return [
    `Left out: ${all} of ${files.length} test files (${counts.join(', ')}, slow or only for publishing ${rest.size}) and most of the random sequences.`,
    '`npm run test:all` runs everything. It takes about twenty minutes, and first installs agents, a browser and a database (1.8 GB, once).',
  ];
}

/**
 * The arguments for vitest: names of areas become the paths of their tests, everything else stays. Only what comes before the first
 * option can be an area, because a word behind an option may be its value (`-t engine`).
 * @param {readonly string[]} args
 * @param {readonly string[]} files the paths of all tests
 * @returns {{ readonly args: readonly string[], readonly files: readonly string[] } | { readonly unknown: string }} `files`: what runs;
 * `unknown`: a word that is no area and in no path
 */
export function vitestArguments(args, files) {
  const firstOption = args.findIndex((arg) => arg.startsWith('-'));
  const end = firstOption < 0 ? args.length : firstOption;
  const names = args.slice(0, end);
  const unknown = names.find((name) => !Object.hasOwn(AREAS, name) && !files.some((file) => file.includes(name)));
  if (unknown !== undefined) return { unknown };
  const paths = names.flatMap((name) => AREAS[name] ?? [name]);
  const found = files.filter((file) => paths.length === 0 || paths.some((path) => file.includes(path)));
  return { args: [...paths, ...args.slice(end)], files: found };
}
