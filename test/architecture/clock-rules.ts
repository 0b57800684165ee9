// The time comes from the injected clock (ports/clock.ts), so that tests can set it. Only the files that are named here read it themselves.
import { isTest } from './import-rules.ts';
import { type Node, placesIn } from './syntax.ts';

/** Folders with clocks of their own: that of this machine, and stand-ins for agents and models. */
const FREE = ['host/', 'testing/', 'agents/scripted/'];

/** Files that read the time of day, and why. Nothing that they read is stored in a conversation. */
export const USES_OF_WALL_TIME: Readonly<Record<string, string>> = {
  'clients/http/live.ts':
    'says since when a stream is open, and how long it was silent, also while the machine was asleep',
  'faces/cli/chat/chat.ts': 'shows a person how long a command runs',
  'faces/cli/chat/screen.ts': 'shows a person how long ago something happened',
  'faces/cli/commands/turns/chat.ts': 'names a new conversation after the time',
  'faces/http/server.ts': 'is the default of an option that tests set',
  'library/live.ts': 'says since when a stream is open',
  'sandboxes/vendors/vercel.ts': 'compares with the time at which the vendor ends a machine',
  'stores/sqlite/file/bell.ts': 'sets the time of a file, so that others see a change',
};

/** Files and folders (with a slash at the end) that measure how long something real takes, and what. A clock of a test would not change it. */
export const USES_OF_ELAPSED_TIME: Readonly<Record<string, string>> = {
  'agents/acp/': 'the silence of a running agent',
  'clients/http/': 'the answers of a server',
  'engine/intake/portable.ts': 'its own work, which it interrupts so that others can run',
  'faces/cli/': 'what is shown in a terminal for a while',
  'faces/http/': 'requests, and work that is interrupted so that others can run',
  'sandboxes/': 'the start and the end of programs and machines',
  'stores/postgres/': 'the answers of the database server',
  'stores/sqlite/file/faults.ts': 'a file that is locked by another process',
};

/** `wall`: `Date.now`, `Date()` or `new Date()`; `elapsed`: `performance.now`. Each once. */
export function usesOfTime(path: string, source: string): ('wall' | 'elapsed')[] {
  if (isTest(path) || FREE.some((folder) => path.startsWith(folder))) return [];
  // Parsing all files takes seconds, and few have one of the words.
  if (!/\bDate\b|\bperformance\b/.test(source)) return [];
  const found = placesIn(path, source).flatMap(({ node }) => {
    const name = readBy(node);
    return name === null ? [] : [name];
  });
  return [...new Set(found)];
}

function readBy({ type, object, property, callee, arguments: args }: Node): 'wall' | 'elapsed' | null {
  if (type === 'MemberExpression') {
    const member = `${nameOf(object)}.${nameOf(property)}`;
    if (member === 'Date.now') return 'wall';
    return member === 'performance.now' ? 'elapsed' : null;
  }
  const isCall = type === 'NewExpression' || type === 'CallExpression';
  return isCall && nameOf(callee) === 'Date' && (args as Node[]).length === 0 ? 'wall' : null;
}

const nameOf = (node: unknown) => (node as { name?: string }).name ?? '';

/** Every file that reads the time and is not named here, and every name without such a file. */
export function faultsOfTime(files: readonly (readonly [path: string, source: string])[]): string[] {
  const uses = files.flatMap(([path, source]) => usesOfTime(path, source).map((kind) => ({ path, kind })));
  const tables = [
    { kind: 'wall', named: Object.keys(USES_OF_WALL_TIME), reads: 'reads the time of day' },
    { kind: 'elapsed', named: Object.keys(USES_OF_ELAPSED_TIME), reads: 'measures time' },
  ];
  return tables.flatMap(({ kind, named, reads }) => {
    const paths = uses.filter((use) => use.kind === kind).map(({ path }) => path);
    const isNamed = (path: string) =>
      named.some((name) => (name.endsWith('/') ? path.startsWith(name) : path === name));
    const isUsed = (name: string) => paths.some((path) => (name.endsWith('/') ? path.startsWith(name) : path === name));
    return [
      ...paths.filter((path) => !isNamed(path)).map((path) => `${path} ${reads}, and does not use the clock`),
      ...named.filter((name) => !isUsed(name)).map((name) => `no file of ${name} ${reads}`),
    ];
  });
}
