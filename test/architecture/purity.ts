// Finds impure code in core/, and any code in ports/.
import { stripTypeScriptTypes } from 'node:module';
import { type GlobalUse, readsTime } from './names.ts';
import { outlineOf } from './outline.ts';
import { type Node, placesIn } from './syntax.ts';

/** Globals whose results depend only on what they get. All others are refused. */
const PURE = new Set([
  ...['undefined', 'NaN', 'Infinity', 'Object', 'Array', 'Map', 'Set', 'WeakMap', 'WeakSet', 'Iterator', 'Symbol'],
  ...['Number', 'BigInt', 'Boolean', 'String', 'RegExp', 'JSON', 'Math', 'Date'],
  ...['Error', 'RangeError', 'SyntaxError', 'TypeError', 'ArrayBuffer', 'DataView', 'Uint8Array', 'structuredClone'],
  ...['TextDecoder', 'TextEncoder', 'URL', 'URLSearchParams', 'atob', 'btoa'],
  ...['decodeURIComponent', 'encodeURIComponent', 'parseFloat', 'parseInt', 'isFinite', 'isNaN'],
]);

/**
 * The impure globals and syntax that a file uses, each once. Not seen: methods whose results depend on the time zone or language of the
 * machine, such as `getHours`, and what a caller passes in.
 */
export function impurities(path: string, source: string): string[] {
  const { globals, isAsync } = outlineOf(path, source);
  const impure = globals.flatMap((use) => whyImpure(use) ?? []);
  // Asynchronous code belongs into flow/, or into the folders with I/O.
  return [...new Set([...impure, ...(isAsync ? ['async'] : [])])];
}

function whyImpure({ name, how }: GlobalUse): string | null {
  if (!PURE.has(name)) return name;
  if (name === 'Math') return how === 'random' || how === null ? 'Math.random' : null;
  return name === 'Date' && readsTime(how) ? 'Date' : null;
}

/** The first line of each statement that remains without the types: none, if the file only declares types. */
export function runtimeCode(path: string, source: string): string[] {
  const javascript = stripTypeScriptTypes(source);
  return placesIn(path.replace(/\.ts$/, '.js'), javascript)
    .filter(({ key, parent }) => key === 'body' && parent?.node.type === 'Program')
    .map(({ node }) => node as Statement)
    .filter((statement) => !isEmptyExport(statement))
    .map(({ start, end }) => javascript.slice(start, end).split('\n')[0] ?? '');
}

type Statement = Node & { start: number; end: number };

const isEmptyExport = ({ type, declaration, specifiers }: Statement) =>
  type === 'ExportNamedDeclaration' && declaration === null && (specifiers as Node[]).length === 0;
