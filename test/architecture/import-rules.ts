// Which files of src/ may import which. A function of one file's text, so that it can be tested with invented files.
import { isBuiltin } from 'node:module';
import { posix } from 'node:path';
import { isTest, outlineOf } from './outline.ts';

/** Folders whose subfolders must not import each other. */
const GROUPS = ['stores', 'agents', 'sandboxes', 'clients', 'faces'];
const FOLDERS = [
  'core',
  'ports',
  'flow',
  'leases',
  'engine',
  'library',
  'tasks',
  'doctor',
  'wire',
  'host',
  'testing',
  ...GROUPS,
];
/** The common code of adapters, sandboxes or stores. They may import it, and it imports none of them. */
const SHARED = ['agents/shared', 'sandboxes/shared', 'stores/shared'];
/** The folders whose code holds leases. All use `leases` for that. */
const LEASE_HOLDERS = ['engine', 'tasks', 'library'];
/** The only files at the top of src/, and the only ones that import implementations. */
const ENTRIES = [
  'compose.ts',
  'compose-agents.ts',
  'compose-credentials.ts',
  'compose-sandboxes.ts',
  'connect.ts',
  'client.ts',
  'serve.ts',
  'backup.ts',
  'demo.ts',
  'bridge.ts',
  'main.ts',
  'index.ts',
];

/** Every import rule that the file breaks, as a sentence. `path` is relative to src/, with forward slashes. */
export function brokenImportRules(path: string, source: string): string[] {
  return [whyMisplaced(path), ...importsOf(path, source).map((specifier) => whyNot(path, specifier))].filter(
    (why) => why !== undefined,
  );
}

/** Every module that the file imports, types included; undefined stands for a computed name. */
export const importsOf = (path: string, source: string): (string | undefined)[] =>
  outlineOf(path, source).imports.map(({ module }) => module);

function whyMisplaced(path: string): string | undefined {
  const [first = '', ...rest] = path.split('/');
  if (rest.length > 0) return FOLDERS.includes(first) ? undefined : `the folder ${first} is not part of the layout`;
  return ENTRIES.includes(first) ? undefined : `only ${ENTRIES.join(', ')} lie at the top of src`;
}

/** The part of the program a file belongs to: `core`, `stores/sqlite`, or at the top of src/ the file itself. */
function unitOf(path: string): string {
  const [first = '', second = ''] = path.split('/');
  return GROUPS.includes(first) ? `${first}/${second}` : first;
}

/** Why `path` may not import `specifier`, or undefined when it may. The rules are the same for types and values. */
function whyNot(path: string, specifier: string | undefined): string | undefined {
  const from = unitOf(path);
  if (specifier === undefined) return 'a computed import cannot be checked';
  if (!specifier.startsWith('.')) return isTest(path) ? undefined : whyNotPackage(from, specifier);
  const target = posix.join(posix.dirname(path), specifier);
  if (target.startsWith('../')) return isTest(path) ? undefined : `imports ${specifier} from outside of src`;
  // The other rules do not look at tests.
  if (isTest(target) && !isTest(path)) return `imports ${specifier}, which is a test`;
  const to = unitOf(target);
  if (from === to) return undefined;
  // The stand-in model and the program do not import each other. Only the demo uses the stand-in model.
  if (from === 'testing' || to === 'testing') {
    return to === 'core' || from === 'demo.ts' || isTest(path) ? undefined : `${from} imports ${to}`;
  }
  if (ENTRIES.includes(from)) return undefined;
  if (to === 'core' || (to === 'ports' && from !== 'core' && from !== 'flow')) return undefined;
  if (to === 'flow' && from !== 'core' && from !== 'ports') return undefined;
  if (to === 'leases' && LEASE_HOLDERS.includes(from)) return undefined;
  if (SHARED.includes(to) && from.split('/')[0] === to.split('/')[0]) return undefined;
  if (to === 'wire' && /^(faces|clients)\//.test(from)) return undefined;
  return `${from} imports ${to}`;
}

function whyNotPackage(from: string, name: string): string | undefined {
  // A port has no code (another rule checks that), so it can use only the types of Node's modules.
  if (from === 'core' || from === 'flow' || (from === 'ports' && !isBuiltin(name))) return `${from} imports ${name}`;
  if (name === 'throughline' || name.startsWith('throughline/')) return `${from} imports the package itself`;
  if (from === 'testing' && !isBuiltin(name)) return `testing imports ${name}`;
  if (from === 'wire' && isBuiltin(name)) return `wire runs in browsers and imports ${name}`;
  return undefined;
}
