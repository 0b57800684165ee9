// Finds the tests of a file, and whether they can run: not skipped, not in code that never runs, and in a file that is run.
import { posix } from 'node:path';
import { isDeclared, isLabel } from './purity.ts';
import { type Node, type Place, placesIn } from './syntax.ts';

/** Path, relative to the checkout, and text. */
export type Files = ReadonlyMap<string, string>;

/**
 * Every call of `test` or `it` whose first argument is a string: the name of the test. Comments and other strings do not count.
 * `runs` returns false if a reader of the code can see that the test never runs. A condition other than a literal may let it run.
 */
export function testsIn(file: string, files: Files): { name: string; runs: () => boolean }[] {
  return parsed(file, files).flatMap((place) => {
    const call = callIn(place.node);
    if (call === null || !TEST.has(call.of) || call.name === null) return [];
    const runs = () => !skipsItself(place, file, files) && isRun({ file, place }, files, new Set());
    return [{ name: call.name, runs }];
  });
}

const TEST = new Set(['test', 'it']);
const SUITE = new Set(['describe', 'suite']);

type At = { file: string; place: Place };

/** Whether something runs the code at a place. `seen`: the functions and files that were looked at, so that a circle ends. */
function isRun({ file, place }: At, files: Files, seen: Set<string>): boolean {
  for (let at = place; at.parent !== undefined; at = at.parent) {
    if (isSkippedCall(at.node) || isDead(at)) return false;
    const name = nameOfFunction(at);
    if (name !== null) return isFunctionRun(file, name, files, seen);
  }
  return isFileRun(file, files, seen);
}

/** A file is run by itself if it is a test file; otherwise another file must import it. */
function isFileRun(file: string, files: Files, seen: Set<string>): boolean {
  if (file.endsWith('.test.ts')) return true;
  if (seen.has(file)) return false;
  seen.add(file);
  return importsOfFile(file, files).some((at) => isRun(at, files, seen));
}

/** A function runs if code that runs names it: in its own file, or in one that imports it. */
function isFunctionRun(file: string, name: string, files: Files, seen: Set<string>): boolean {
  const id = `${file} ${name}`;
  if (seen.has(id)) return false;
  seen.add(id);
  const uses = parsed(file, files).filter((place) => isUse(place, name));
  if (uses.some((place) => isRun({ file, place }, files, seen))) return true;
  return importsOfFile(file, files).some((at) => {
    const specifiers = (at.place.node.specifiers ?? []) as Node[];
    return specifiers.some((specifier) => {
      const [theirs, ours] = at.place.node.type === 'ImportDeclaration' ? ['imported', 'local'] : ['local', 'exported'];
      if ((specifier[theirs] as Node | undefined)?.name !== name) return false;
      return isFunctionRun(at.file, (specifier[ours] as Node).name as string, files, seen);
    });
  });
}

/** The declarations that import values of the file, or export them again. */
function importsOfFile(file: string, files: Files): At[] {
  const importers = [...files].filter(([, text]) => text.includes(`/${posix.basename(file)}'`));
  return importers.flatMap(([importer]) =>
    parsed(importer, files)
      .filter(({ node }) => {
        const { value } = (node.source ?? {}) as { value?: unknown };
        const isType = node.importKind === 'type' || node.exportKind === 'type';
        return typeof value === 'string' && !isType && posix.join(posix.dirname(importer), value) === file;
      })
      .map((place) => ({ file: importer, place })),
  );
}

/** Whether the place names a function in order to call it or to pass it on. */
function isUse(place: Place, name: string): boolean {
  if (place.node.type !== 'Identifier' || place.node.name !== name) return false;
  return !isLabel(place) && !isDeclared(place) && !/^(Import|Export)\w*Specifier$/.test(place.parent?.node.type ?? '');
}

/** `function name() {…}` or `const name = () => …`; null: it has no name, so it belongs to the code around it. */
function nameOfFunction({ node, parent }: Place): string | null {
  const owner = /^(ArrowFunction|Function)Expression$/.test(node.type) ? parent?.node : node;
  if (owner?.type !== 'FunctionDeclaration' && owner?.type !== 'VariableDeclarator') return null;
  if (owner === node && owner.type === 'VariableDeclarator') return null;
  return ((owner.id as Node | null)?.name as string | undefined) ?? null;
}

/** Whether this is the part of a condition that never holds: `if (false) …`, `false && …`, `true ? … : HERE`. */
function isDead({ key, parent }: Place): boolean {
  const { type, test, left, operator } = parent?.node ?? { type: '' };
  if (type === 'IfStatement' || type === 'ConditionalExpression') {
    const { value } = test as Node;
    return (value === false && key === 'consequent') || (value === true && key === 'alternate');
  }
  return type === 'LogicalExpression' && operator === '&&' && key === 'right' && (left as Node).value === false;
}

function isSkippedCall(node: Node): boolean {
  const call = callIn(node);
  return call !== null && (TEST.has(call.of) || SUITE.has(call.of)) && call.skips;
}

/** Whether the test calls `skip` of its context under no condition: `(context) => context.skip('…')`, `({ skip }) => skip('…')`. */
function skipsItself(test: Place, file: string, files: Files): boolean {
  return parsed(file, files).some((place) => {
    const callee = place.node.type === 'CallExpression' ? (place.node.callee as Node) : null;
    if (callee === null) return false;
    let at = place.parent;
    while (at !== undefined && UNCONDITIONAL.has(at.node.type)) at = at.parent;
    if (at?.parent?.node !== test.node || at.key !== 'arguments') return false;
    const [context] = (at.node.params ?? []) as Node[];
    return context !== undefined && isSkipOf(context, callee);
  });
}

const UNCONDITIONAL = new Set(['ExpressionStatement', 'BlockStatement', 'ReturnStatement', 'AwaitExpression']);

function isSkipOf(context: Node, callee: Node): boolean {
  if (callee.type === 'MemberExpression') {
    const ofContext = context.type === 'Identifier' && (callee.object as Node).name === context.name;
    return ofContext && (callee.property as Node).name === 'skip';
  }
  if (callee.type !== 'Identifier' || context.type !== 'ObjectPattern') return false;
  return (context.properties as Node[]).some(
    ({ key, value }) => (key as Node | undefined)?.name === 'skip' && (value as Node).name === callee.name,
  );
}

/**
 * A call such as `test.concurrent.each(ROWS)('name', …)`. `of`: the first identifier of its chain. `name`: its first argument; null: it is no string.
 * `skips`: the test or group never runs. A condition other than the literals `true` and `false` may let it run.
 */
type Call = { of: string; name: string | null; skips: boolean };

function callIn(node: Node): Call | null {
  if (node.type !== 'CallExpression') return null;
  const [first, ...others] = node.arguments as Node[];
  const chain = chainOf(node.callee as Node);
  if (chain === null) return null;
  return { of: chain.of, name: first ? textOf(first) : null, skips: chain.skips || others.some(isSkipOption) };
}

/** The part before the last arguments: an identifier with members, and calls of these such as `each(…)` and `skipIf(…)`. */
function chainOf(node: Node): { of: string; skips: boolean } | null {
  if (node.type === 'Identifier') return { of: node.name as string, skips: false };
  if (node.type === 'TaggedTemplateExpression') return chainOf(node.tag as Node);
  if (node.type === 'MemberExpression') {
    const chain = chainOf(node.object as Node);
    const member = (node.property as Node).name as string | undefined;
    return chain && { ...chain, skips: chain.skips || member === 'skip' || member === 'todo' };
  }
  if (node.type !== 'CallExpression') return null;
  const callee = node.callee as Node;
  const chain = chainOf(callee);
  const [condition] = node.arguments as Node[];
  const member = callee.type === 'MemberExpression' ? (callee.property as Node).name : undefined;
  const never =
    (member === 'skipIf' && condition?.value === true) ||
    (member === 'runIf' && condition?.value === false) ||
    ((member === 'each' || member === 'for') && isEmptyList(condition));
  return chain && { ...chain, skips: chain.skips || never };
}

/** `[]`, also with a type: `[] as const`. */
function isEmptyList(node: Node | undefined): boolean {
  if (node?.type === 'ArrayExpression') return (node.elements as unknown[]).length === 0;
  return /^TS(As|Satisfies)Expression$/.test(node?.type ?? '') && isEmptyList(node?.expression as Node);
}

/** `{ skip: true }` or `{ todo: true }`. */
function isSkipOption({ type, properties }: Node): boolean {
  if (type !== 'ObjectExpression') return false;
  return (properties as Node[]).some(({ key, value }) => {
    const name = (key as Node | undefined)?.name;
    return (name === 'skip' || name === 'todo') && (value as Node).value === true;
  });
}

/** The text of a string or template; null: it is neither. */
function textOf(node: Node): string | null {
  if (node.type === 'Literal') return typeof node.value === 'string' ? node.value : null;
  if (node.type !== 'TemplateLiteral') return null;
  const quasis = node.quasis as { value: { cooked: string } }[];
  return quasis.map(({ value }) => value.cooked).join('…');
}

/** The syntax tree of a file, kept by its text, because a suite is looked for in many files. */
function parsed(file: string, files: Files): Place[] {
  const text = files.get(file) ?? '';
  const places = trees.get(`${file}\n${text}`) ?? placesIn(file, text);
  trees.set(`${file}\n${text}`, places);
  return places;
}

const trees = new Map<string, Place[]>();
