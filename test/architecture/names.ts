// What the names of a file refer to: to something that the file declares or imports, or to a global.
import type { Node, Place } from './syntax.ts';

/** The names that each scope declares, with the place of each declared name. Types are no declarations: they hide no global. */
export type Scopes = ReadonlyMap<Node, ReadonlyMap<string, Place>>;

export function scopesIn(places: readonly Place[]): Scopes {
  const scopes = new Map<Node, Map<string, Place>>();
  for (const place of places) {
    const scope = place.node.type === 'Identifier' ? scopeDeclaring(place) : null;
    if (scope === null) continue;
    const names = scopes.get(scope) ?? new Map<string, Place>();
    scopes.set(scope, names.set(place.node.name as string, place));
  }
  return scopes;
}

/** Where the name that is used at a place is declared; null: nowhere in this file, so it is a global. */
export function declarationOf(name: string, at: Place, scopes: Scopes): Place | null {
  for (let scope: Place | undefined = at; scope !== undefined; scope = scope.parent) {
    const found = scopes.get(scope.node)?.get(name);
    if (found !== undefined) return found;
  }
  return null;
}

/** What is declared: a function, a class, a variable with its value, or an import. */
export function ownerOf(declared: Place): Place {
  let at = declared;
  while (isPartOfPattern(at)) at = at.parent as Place;
  return at.parent as Place;
}

/** Whether an identifier is a value that is read or written here, and not a type, a declaration, or the name of a member. */
export function isReference(place: Place): boolean {
  const { node, key, parent } = place;
  const type = parent?.node.type ?? '';
  if (node.type !== 'Identifier' || isLabel(place) || scopeDeclaring(place) !== null) return false;
  if (type.startsWith('TS')) return WRAPPERS.has(type);
  if (type === 'ExportSpecifier') return key === 'local' && !parent?.parent?.node.source;
  return !NO_VALUES.has(type) && !isDeclaredAsGlobal(place);
}

/** Syntax around a value that changes its type at most. */
export const WRAPPERS = new Set([
  'ParenthesizedExpression',
  'TSAsExpression',
  'TSSatisfiesExpression',
  'TSNonNullExpression',
  'TSInstantiationExpression',
]);

const NO_VALUES = new Set([
  ...[
    'ImportSpecifier',
    'ImportDefaultSpecifier',
    'ImportNamespaceSpecifier',
    'ExportAllDeclaration',
    'ImportAttribute',
  ],
  ...['MetaProperty', 'LabeledStatement', 'BreakStatement', 'ContinueStatement'],
]);

const isLabel = ({ key, parent }: Place) => (key === 'property' || key === 'key') && parent?.node.computed !== true;

/** The scope in which the identifier at this place is declared; null: it is not declared here. */
function scopeDeclaring(place: Place): Node | null {
  let at = place;
  while (isPartOfPattern(at)) at = at.parent as Place;
  const { key, parent } = at;
  if (parent === undefined || isDeclaredAsGlobal(at)) return null;
  const { type } = parent.node;
  if (type === 'VariableDeclarator') {
    if (key !== 'id') return null;
    return scopeAround(parent, parent.parent?.node.kind === 'var' ? OF_FUNCTIONS : OF_BLOCKS);
  }
  if (key === 'params') return type.startsWith('TS') ? null : parent.node;
  if (key === 'param') return type === 'CatchClause' ? parent.node : null;
  if (key === 'local') return /^Import\w*Specifier$/.test(type) && !isTypeImport(parent) ? scopeAround(parent) : null;
  if (key !== 'id' || type.startsWith('TS')) return null;
  return type.endsWith('Expression') ? parent.node : scopeAround(parent);
}

/** `declare const process: …` says that there is a global. */
const isDeclaredAsGlobal = ({ parent }: Place) =>
  parent?.node.declare === true || (parent?.node.type === 'VariableDeclarator' && parent.parent?.node.declare === true);

const isTypeImport = ({ node, parent }: Place) => node.importKind === 'type' || parent?.node.importKind === 'type';

/** `{ a, b: HERE }`, `[HERE]`, `...HERE` and `HERE = 1` in a pattern. */
function isPartOfPattern({ key, parent }: Place): boolean {
  const type = parent?.node.type;
  if (type === 'Property') return key === 'value' && parent?.parent?.node.type === 'ObjectPattern';
  if (type === 'AssignmentPattern') return key === 'left';
  return type === 'ObjectPattern' || type === 'ArrayPattern' || type === 'RestElement';
}

const OF_FUNCTIONS =
  /^(Program|StaticBlock|FunctionDeclaration|FunctionExpression|ArrowFunctionExpression|TSModuleBlock)$/;
const OF_BLOCKS = new RegExp(`${OF_FUNCTIONS.source}|^(BlockStatement|For\\w*Statement|SwitchStatement)$`);

function scopeAround({ parent }: Place, kind = OF_BLOCKS): Node | null {
  let at = parent;
  while (at !== undefined && !kind.test(at.node.type)) at = at.parent;
  return at?.node ?? null;
}

/**
 * A use of a global, or of an object of Node that is also a global. `how`: the member that is taken; `()`: it is called; `new`: it is
 * constructed, and `new()` without arguments; `instanceof`; null: it is passed on, or its member is computed.
 */
export type GlobalUse = { name: string; how: string | null };

/** Every use of a global, each kind once. */
export function globalsIn(places: readonly Place[]): GlobalUse[] {
  const scopes = scopesIn(places);
  const uses = new Map<string, GlobalUse>();
  for (const place of places) {
    for (const use of usesAt(place, scopes)) uses.set(`${use.name} ${use.how}`, use);
  }
  return [...uses.values()];
}

function usesAt(place: Place, scopes: Scopes): GlobalUse[] {
  if (place.node.type === 'ImportDeclaration') return usesByImport(place.node);
  if (place.node.type === 'MetaProperty' && (place.node.meta as Node).name === 'import')
    return usesOf('import.meta', place);
  if (!isReference(place)) return [];
  const name = place.node.name as string;
  if (declarationOf(name, place, scopes) !== null) return [];
  return GLOBAL_OBJECT.has(name) ? usesOfMembers(place) : usesOf(name, place);
}

const GLOBAL_OBJECT = new Set(['globalThis', 'global', 'window', 'self']);

/** `globalThis.process.cwd()` and `const { process } = globalThis` are uses of `process`. */
function usesOfMembers(place: Place): GlobalUse[] {
  const { node, parent } = outermost(place);
  const member = parent?.node.type === 'MemberExpression' && parent.node.object === node ? memberOf(parent.node) : null;
  if (parent !== undefined && member !== null) return usesOf(member, parent);
  return usesOf('globalThis', place).map(({ name, how }) => ({ name: how ?? name, how: null }));
}

function usesOf(name: string, place: Place): GlobalUse[] {
  const { node, key, parent } = outermost(place);
  const { type, operator, init, arguments: args } = parent?.node ?? { type: '' };
  if (type === 'MemberExpression' && key === 'object') return [{ name, how: memberOf(parent?.node as Node) }];
  if (type === 'CallExpression' && key === 'callee') return [{ name, how: '()' }];
  if (type === 'NewExpression' && key === 'callee')
    return [{ name, how: (args as Node[]).length === 0 ? 'new()' : 'new' }];
  if (type === 'BinaryExpression' && key === 'right' && operator === 'instanceof') return [{ name, how: 'instanceof' }];
  // `const { now } = Date`, `({ now } = Date)` and `function at({ now } = Date)`
  const pattern = (init === node ? parent?.node.id : key === 'right' ? parent?.node.left : null) as Node | null;
  if (pattern?.type !== 'ObjectPattern') return [{ name, how: null }];
  return (pattern.properties as Node[]).map(({ type, key, computed }) => ({
    name,
    how: type === 'Property' ? nameOfKey(key as Node, computed === true) : null,
  }));
}

function outermost(place: Place): Place {
  let at = place;
  while (at.parent !== undefined && WRAPPERS.has(at.parent.node.type)) at = at.parent;
  return at;
}

const memberOf = ({ property, computed }: Node) => nameOfKey(property as Node, computed === true);

/** The name of a member or property; null: it is computed. */
function nameOfKey(key: Node, computed: boolean): string | null {
  if (key.type === 'Literal') return String(key.value);
  return computed ? null : ((key.name as string | undefined) ?? null);
}

/** `import { hrtime } from 'node:process'` and `import { performance } from 'node:perf_hooks'`. */
function usesByImport({ source, specifiers, importKind }: Node): GlobalUse[] {
  const module = String((source as Node).value).replace(/^node:/, '');
  if (importKind === 'type' || (module !== 'process' && module !== 'perf_hooks')) return [];
  return (specifiers as Node[]).map(({ imported }) => {
    const name = (imported as Node | undefined)?.name as string | undefined;
    if (module === 'process') return { name: 'process', how: name ?? null };
    return { name: name ?? 'performance', how: null };
  });
}

/** Whether a use of `Date` reads the time of day. A Date made from a value does not; `Date(value)` without `new` does. */
export const readsTime = (how: string | null) =>
  !['new', 'instanceof', 'UTC', 'parse', 'prototype'].includes(how ?? '');
