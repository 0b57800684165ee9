// Finds impure code in core/, and any code in ports/.
import { stripTypeScriptTypes } from 'node:module';
import { type Node, type Place, placesIn } from './syntax.ts';

/** Globals that reach outside of the program, or whose results change with time. */
const OUTSIDE = 'process crypto fetch performance console globalThis global require'.split(' ');
const TIMERS = ['setTimeout', 'setInterval', 'setImmediate', 'queueMicrotask'];
const IMPURE = new Set([...OUTSIDE, ...TIMERS, 'Promise']);

/** The impure globals and syntax that a file uses, each once. */
export function impurities(path: string, source: string): string[] {
  const places = placesIn(path, source);
  // Scopes are ignored: a name that the file declares anywhere counts as its own everywhere.
  const own = new Set(places.filter(isDeclared).map(({ node }) => node.name));
  const found = places.flatMap((place) => {
    if (isAsync(place.node)) return ['async'];
    const name = nameOf(place.node);
    if (IMPURE.has(name) && !own.has(name) && !isLabel(place)) return [name];
    return currentDate(place.node) ?? [];
  });
  return [...new Set(found)];
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

/** Asynchronous code belongs into flow/, or into the folders with I/O. */
const isAsync = ({ type, async, await: waits }: Node) => type === 'AwaitExpression' || async === true || waits === true;

/** `Date.now`, `Math.random`, `Date()` and `new Date()`; a Date made from a value is fine. */
function currentDate({ type, object, property, callee, arguments: args }: Node): string | undefined {
  const member = type === 'MemberExpression' ? `${nameOf(object)}.${nameOf(property)}` : '';
  if (member === 'Date.now' || member === 'Math.random') return member;
  const called = type === 'NewExpression' || type === 'CallExpression' ? nameOf(callee) : '';
  return called === 'Date' && (args as Node[]).length === 0 ? 'new Date()' : undefined;
}

const nameOf = (node: unknown): string => {
  const { type, name } = node as Node;
  return type === 'Identifier' ? (name as string) : '';
};

/** Whether the name is that of a type, a member or a property. Then it does not refer to a global. */
export const isLabel = ({ key, parent }: Place) =>
  key === 'typeName' ||
  ((key === 'property' || key === 'key') && (parent?.node.computed === false || parent?.node.computed === undefined));

/** Whether the place declares a variable, a parameter, an import, a function … */
export function isDeclared({ key, parent }: Place): boolean {
  const type = parent?.node.type ?? '';
  if (type === 'Property') return key === 'value' && parent?.parent?.node.type === 'ObjectPattern';
  if (type === 'ArrayPattern' || type === 'RestElement') return true;
  if (type === 'AssignmentPattern') return key === 'left';
  return key === 'id' || key === 'params' || key === 'param' || (key === 'local' && type.startsWith('Import'));
}
