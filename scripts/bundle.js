// Bundles the sources for Node. scripts/build.js and the tests (test-program.js) use it.
//
// Everything is bundled, because Node takes longer to open two hundred files than to run a command. The format is CommonJS, because only
// that can be run with a cache of compiled functions (bin/compiled.js). Code that several files need is in one chunk, so that
// `error instanceof ThroughlineError` works in all of them.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';
import { BUNDLED, entriesOf, IN_BROWSERS } from './manifest.js';

const at = (/** @type {string} */ path) => fileURLToPath(new URL(`../${path}`, import.meta.url));

/** The entries of the package: the source of each, by the name of its file in dist/. */
export const ENTRIES = entriesOf(JSON.parse(readFileSync(at('package.json'), 'utf8')));

const MAIN = { main: 'src/main.ts' };
const THREADS = {
  'long-reads-thread': 'src/stores/sqlite/reading/long-reads-thread.ts',
  'copy-thread': 'src/stores/sqlite/backup/copy-thread.ts',
};
const SCRIPTED = { 'scripted-agent': 'src/agents/scripted/scripted-agent.js' };
/** Runs in a rented machine, where nothing else of ours is installed. */
const BRIDGE = { bridge: 'src/bridge.ts' };

/**
 * Groups of sources that are loaded together. A group has these sources and everything that they import. A source that several groups
 * need is in a chunk for exactly those groups. So a command loads few files, and nothing that it does not need.
 * @satisfies {Readonly<Record<string, readonly string[]>>}
 */
const LOADED_TOGETHER = {
  command: ['src/main.ts'],
  client: ['src/client.ts'],
  // What `send` imports to run a turn of a simple agent.
  turn: [
    'src/compose.ts',
    'src/connect.ts',
    'src/stores/sqlite/store.ts',
    'src/agents/claude/find/package.ts',
    'src/agents/acp/known/packages.ts',
    'src/agents/scripted/adapter.ts',
    'src/faces/cli/commands/turns/send.ts',
    'src/faces/cli/commands/turns/watch-turn.ts',
  ],
};

/**
 * Parts of the chunk for turns that are loaded when they are first used, together with what only they import. The top level of the other
 * sources of that chunk must not use them.
 */
const LOADED_WHEN_USED = {
  // What `send` uses only after it has started the agent's program. It is loaded while that program starts.
  later: [
    'src/agents/scripted/session.ts',
    'src/agents/scripted/storage.ts',
    'src/engine/intake/conversations.ts',
    'src/engine/turn/end-turn.ts',
    // Not in `seldom`, although it is seldom used: a long-running process must have it loaded when it has to end a turn.
    'src/engine/turn/recover.ts',
    'src/engine/turn/run-turn.ts',
    'src/engine/worker/held.ts',
    'src/faces/cli/commands/turns/watch-turn.ts',
    'src/leases/lease.ts',
    'src/sandboxes/shared/local-folder.ts',
    'src/stores/shared/content.ts',
    'src/stores/shared/totals.ts',
    'src/stores/shared/writing/claim.ts',
    'src/stores/shared/writing/commit.ts',
    'src/stores/shared/writing/sessions.ts',
    'src/stores/shared/writing/totals.ts',
    'src/stores/sqlite/conversations/ledger.ts',
    'src/stores/sqlite/turns/claim.ts',
  ],
  // What most turns do not use.
  seldom: [
    'src/agents/shared/credentials.ts',
    'src/agents/shared/install.ts',
    'src/core/restore/fit.ts',
    'src/core/restore/transcript.ts',
    'src/core/tasks/task-decision.ts',
    'src/engine/intake/erase.ts',
    'src/engine/intake/portable.ts',
    'src/engine/reading/observed-store.ts',
    'src/engine/reading/views.ts',
    'src/engine/restore/rehydrate.ts',
    'src/engine/restore/replay.ts',
    'src/engine/sandboxes/alone.ts',
    'src/engine/sandboxes/leave.ts',
    'src/engine/sandboxes/measure.ts',
    'src/engine/sandboxes/sandboxes.ts',
    'src/engine/sandboxes/set-up.ts',
    'src/engine/worker/kill.ts',
    'src/engine/worker/warm.ts',
    'src/sandboxes/container/engine.ts',
    'src/sandboxes/directory/changes.ts',
    'src/sandboxes/directory/git.ts',
    'src/sandboxes/directory/worktree.ts',
    'src/sandboxes/directory/worktree-keep.ts',
    'src/sandboxes/shared/changes-inside.ts',
    'src/sandboxes/shared/compare.ts',
    'src/sandboxes/shared/isolated/visible.ts',
    'src/stores/shared/tasks.ts',
    'src/stores/shared/verbs/census.ts',
    'src/stores/shared/writing/imported.ts',
    'src/stores/sqlite/conversations/copy.ts',
    'src/stores/sqlite/conversations/verify.ts',
  ],
};

/**
 * Bundles everything that runs on Node: the command, its threads, the scripted agent and the entries of the package.
 * @param {string} folder beside a copy of bin/
 */
export async function bundleForNode(folder) {
  /** The values that each entry exports, without its types. @type {Map<string, readonly string[]>} */
  const valuesOf = new Map();
  const build = await rolldown({
    ...inputOptions({ ...MAIN, ...THREADS, ...ENTRIES }),
    preserveEntrySignatures: 'allow-extension',
    plugins: [
      {
        name: 'what entries export',
        buildEnd() {
          for (const [name, source] of Object.entries(ENTRIES)) {
            valuesOf.set(name, this.getModuleInfo(at(source))?.exports ?? []);
          }
        },
      },
      { name: 'when Node’s modules are loaded', renderChunk: (code) => loadingWhenUsed(code) },
    ],
  });
  const { output } = await build.write({
    dir: folder,
    format: 'cjs',
    // The hash is that of the content: the cache of compiled functions identifies a file by its name.
    entryFileNames: '[name]-[hash].cjs',
    chunkFileNames: '[name]-[hash].cjs',
    comments: false,
    codeSplitting: {
      includeDependenciesRecursively: false,
      groups: [{ name: chunkOf(), debugName: 'loaded together' }],
    },
  });
  await build.close();
  for (const file of output) {
    if (file.type !== 'chunk') continue;
    writeFileSync(join(folder, file.fileName), asAscii(file.code));
    if (file.isEntry) writeEntry(folder, file.name, file.fileName, valuesOf.get(file.name));
  }
  await bundleAlone(folder, SCRIPTED, 'cjs');
  await bundleAlone(folder, BRIDGE, 'cjs');
}

/** V8 keeps ASCII in half the memory of other text, and bin/compiled.js reads it as latin1. @param {string} code */
function asAscii(code) {
  return code.replace(/[^\0-\x7f]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/**
 * Writes the file with the stable name, which loads the one with a hash in its name.
 * @param {string} folder
 * @param {string} name
 * @param {string} compiled
 * @param {readonly string[]} [exported] by an entry of the package
 */
function writeEntry(folder, name, compiled, exported = []) {
  if (name in MAIN) {
    const start = `require('../bin/compiled.js').start(require.resolve('./${compiled}'), ({ main }) => main());\n`;
    writeFileSync(join(folder, `${name}.cjs`), start);
  } else if (name in THREADS) {
    writeFileSync(join(folder, `${name}.cjs`), `require('./${compiled}');\n`);
  } else {
    const check = IN_BROWSERS.includes(name) ? '' : "import '../bin/check-node.mjs';\n";
    const names = exported.toSorted().join(', ');
    writeFileSync(join(folder, `${name}.js`), `${check}export { ${names} } from './${compiled}';\n`);
  }
}

/**
 * Bundles a source and everything that it imports into one file.
 * @param {string} folder
 * @param {Record<string, string>} input
 * @param {'cjs' | 'es'} format
 */
export async function bundleAlone(folder, input, format) {
  const build = await rolldown(inputOptions(input));
  const entryFileNames = format === 'cjs' ? '[name].cjs' : '[name].js';
  await build.write({ dir: folder, format, entryFileNames, comments: false, codeSplitting: false });
  await build.close();
}

/**
 * @param {Record<string, string>} input
 * @returns {import('rolldown').InputOptions}
 */
function inputOptions(input) {
  const ours = ['@oxc-project/', ...BUNDLED.map((name) => `${name}$`)].join('|');
  return {
    cwd: at('.'),
    input,
    platform: 'node',
    // The client, which also runs in browsers, must run on older versions of Node too.
    transform: { target: 'node20' },
    external: new RegExp(`^(node:|(?!${ours})[@a-z])`),
    checks: { ineffectiveDynamicImport: false },
  };
}

/**
 * Makes a chunk load Node's modules, and our chunks of `LOADED_WHEN_USED`, when they are first used. Node takes milliseconds to load some
 * of its modules, and a command needs few of them. `childProcess` is the name that commander gives to such a module.
 * @param {string} code
 */
function loadingWhenUsed(code) {
  const ours = Object.keys(LOADED_WHEN_USED).map((name) => `require_for_turn_${name}`);
  const names = ['node_\\w+', 'childProcess', ...ours].join('|');
  const loads = [...code.matchAll(new RegExp(`^\\t?(?:let|const) (${names}) = (require\\("[^"]+"\\));$`, 'gm'))];
  return loads.reduce((text, [statement, name = '', load]) => {
    const [before = '', ...rest] = text.replace(statement, '').split(new RegExp(`\\b${name}\\b`));
    // The module object itself is used, not only its exports.
    if (!rest.every((after) => after.startsWith('.'))) return text;
    return `let ${name}_;\nconst ${name} = () => ${name}_ ??= ${load};\n${before}${rest.map((after) => `(${name}())${after}`).join('')}`;
  }, code);
}

/** The name of the chunk for a source; null: rolldown decides. */
function chunkOf() {
  const { later, seldom } = LOADED_WHEN_USED;
  /** @type {Map<string, Set<string>> | undefined} */
  let together;
  /** @type {Map<string, Set<string>> | undefined} */
  let whenUsed;
  return (/** @type {string} */ source, /** @type {import('rolldown').ChunkingContext} */ modules) => {
    together ??= new Map(Object.entries(LOADED_TOGETHER).map(([name, files]) => [name, closure(files, modules)]));
    whenUsed ??= new Map([
      ['for-turn', closure(LOADED_TOGETHER.turn, modules, [...later, ...seldom])],
      ['for-turn-later', closure(later, modules, seldom)],
      ['for-turn-seldom', closure(seldom, modules)],
    ]);
    const users = [...together].filter(([, all]) => all.has(source)).map(([name]) => name);
    if (users.length === 0) return null;
    const name = `for-${users.join('-')}`;
    return name === 'for-turn' ? ([...whenUsed].find(([, all]) => all.has(source))?.[0] ?? name) : name;
  };
}

/**
 * These sources and everything that they import, except `without` and what only those import.
 * @param {readonly string[]} files
 * @param {import('rolldown').ChunkingContext} modules
 * @param {readonly string[]} without
 */
function closure(files, modules, without = []) {
  const left = new Set(without.map(at));
  const all = new Set(files.map(at).filter((file) => !left.has(file)));
  for (const file of all) {
    for (const next of modules.getModuleInfo(file)?.importedIds ?? []) if (!left.has(next)) all.add(next);
  }
  return all;
}
