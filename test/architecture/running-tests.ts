// Finds the tests of a file, and whether they can fail: not skipped, not in code that never runs, in a file that is run, with an expectation.
import { posix } from 'node:path';
import { isDead, isEmptyList, truthOf } from './dead-code.ts';
import { expectsSomething, isFunction } from './expectations.ts';
import { declarationOf, isReference, ownerOf, type Scopes } from './names.ts';
import type { Node, Place } from './syntax.ts';
import { type At, childrenOf, type Files, fileNamedBy, parsed, placesBelow } from './test-files.ts';

/**
 * Every call of `test` or `it` whose first argument is a string: the name of the test. Comments and other strings do not count.
 * `checks` returns false if a reader of the code can see that the test never runs, may not pass (`test.fails`), or expects nothing. A
 * condition other than a literal, or a constant with a literal value, may let it run. Not seen: hooks that skip, and expectations whose
 * failure is caught.
 */
export function testsIn(file: string, files: Files): { name: string; checks: () => boolean }[] {
  const { places, scopes } = parsed(file, files);
  return places.flatMap((place) => {
    const call = callIn(place, scopes);
    if (call === null || !TEST.has(call.of) || call.name === null) return [];
    const at = { file, place };
    const checks = () => !skipsItself(at, files) && isRun(at, files, new Set()) && hasExpectation(at, files);
    return [{ name: call.name, checks }];
  });
}

const TEST = new Set(['test', 'it']);
const SUITE = new Set(['describe', 'suite']);

/** Whether something runs the code at a place. `seen`: the functions and files that were looked at, so that a circle ends. */
function isRun({ file, place }: At, files: Files, seen: Set<string>): boolean {
  const { scopes } = parsed(file, files);
  for (let at = place; at.parent !== undefined; at = at.parent) {
    if (isSkippedCall(at, scopes) || isDead(at, scopes)) return false;
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
  const uses = parsed(file, files).places.filter((place) => isUse(place, name));
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
      .places.filter(({ node }) => {
        const isType = node.importKind === 'type' || node.exportKind === 'type';
        return !isType && fileNamedBy(node, importer) === file;
      })
      .map((place) => ({ file: importer, place })),
  );
}

/** Whether the place names a function in order to call it or to pass it on. */
const isUse = (place: Place, name: string) =>
  place.node.name === name && isReference(place) && place.parent?.node.type !== 'ExportSpecifier';

/** `function name() {…}` or `const name = () => …`; null: it has no name, so it belongs to the code around it. */
function nameOfFunction({ node, parent }: Place): string | null {
  const owner = /^(ArrowFunction|Function)Expression$/.test(node.type) ? parent?.node : node;
  if (owner?.type !== 'FunctionDeclaration' && owner?.type !== 'VariableDeclarator') return null;
  if (owner === node && owner.type === 'VariableDeclarator') return null;
  return ((owner.id as Node | null)?.name as string | undefined) ?? null;
}

function isSkippedCall(place: Place, scopes: Scopes): boolean {
  const call = callIn(place, scopes);
  return call !== null && (TEST.has(call.of) || SUITE.has(call.of)) && call.skips;
}

/** Whether a test has an expectation: in its function, or in its table if the function calls what the table gives it. */
function hasExpectation({ file, place }: At, files: Files): boolean {
  const tree = parsed(file, files);
  const has = (key: string) => childrenOf(place, key).some((part) => expectsSomething({ file, place: part }, files));
  if (has('arguments')) return true;
  const callsParameter = functionsOf(place, tree.scopes).some((body) =>
    placesBelow(body, tree).some((used) => {
      if (!/^(callee|object)$/.test(used.key) || !isReference(used)) return false;
      const declared = declarationOf(used.node.name as string, used, tree.scopes);
      return declared !== null && ownerOf(declared).node === body.node;
    }),
  );
  return callsParameter && has('callee');
}

/** Whether the test calls `skip` of its context under no condition: `(context) => context.skip('…')`, `({ skip }) => skip('…')`. */
function skipsItself({ file, place }: At, files: Files): boolean {
  const tree = parsed(file, files);
  return functionsOf(place, tree.scopes).some((body) => {
    const [context] = (body.node.params ?? []) as Node[];
    if (context === undefined) return false;
    return placesBelow(body, tree).some((call) => {
      if (call.node.type !== 'CallExpression' || !isSkipOf(context, call.node.callee as Node)) return false;
      return isCertain(call, body, tree.scopes);
    });
  });
}

/** The functions that a test runs: written in its call, or named there. */
function functionsOf(test: Place, scopes: Scopes): Place[] {
  return childrenOf(test, 'arguments').flatMap((argument) => {
    if (argument.node.type !== 'Identifier') return /Function/.test(argument.node.type) ? [argument] : [];
    const declared = declarationOf(argument.node.name as string, test, scopes);
    const owner = declared && ownerOf(declared);
    if (owner === null || !isFunction(owner)) return [];
    return owner.node.init ? childrenOf(owner, 'init') : [owner];
  });
}

/** Whether the code at a place runs whenever the function is called. */
function isCertain(place: Place, body: Place, scopes: Scopes): boolean {
  for (let at = place; at.node !== body.node; at = at.parent as Place) {
    const { node, key, parent } = at;
    if (parent === undefined || isDead(at, scopes)) return false;
    const { type } = parent.node;
    const isTaken = type === 'IfStatement' && truthOf(childrenOf(parent, 'test')[0], scopes) === (key === 'consequent');
    const isTried = type === 'TryStatement' && key !== 'handler';
    if (parent.node !== body.node && !isTaken && !isTried && !UNCONDITIONAL.has(type)) return false;
    if (parent.node === body.node && node !== body.node.body) return false;
  }
  return true;
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
 * `skips`: the test or group never runs, or must not pass. A condition that is not constant may let it run.
 */
type Call = { of: string; name: string | null; skips: boolean };

function callIn(place: Place, scopes: Scopes): Call | null {
  if (place.node.type !== 'CallExpression') return null;
  const [callee, first, ...others] = [...childrenOf(place, 'callee'), ...childrenOf(place, 'arguments')];
  const chain = callee === undefined ? null : chainOf(callee, scopes);
  if (chain === null) return null;
  const skips = chain.skips || others.some((option) => isSkipOption(option, scopes));
  return { of: chain.of, name: first ? textOf(first.node) : null, skips };
}

const SKIPPING = new Set(['skip', 'todo', 'fails']);

/** The part before the last arguments: an identifier with members, and calls of these such as `each(…)` and `skipIf(…)`. */
function chainOf(place: Place, scopes: Scopes): { of: string; skips: boolean } | null {
  const { node } = place;
  const inner = (key: string) => childrenOf(place, key).map((child) => chainOf(child, scopes))[0] ?? null;
  if (node.type === 'Identifier') {
    const declared = declarationOf(node.name as string, place, scopes);
    const isOwn = declared !== null && isFunction(ownerOf(declared)) && ownerOf(declared).node.id === declared.node;
    return isOwn ? null : { of: node.name as string, skips: false };
  }
  if (node.type === 'TaggedTemplateExpression') return inner('tag');
  if (node.type === 'MemberExpression') {
    const chain = inner('object');
    return chain && { ...chain, skips: chain.skips || SKIPPING.has((node.property as Node).name as string) };
  }
  if (node.type !== 'CallExpression') return null;
  const callee = node.callee as Node;
  const chain = inner('callee');
  const [condition] = childrenOf(place, 'arguments');
  const member = callee.type === 'MemberExpression' ? (callee.property as Node).name : undefined;
  const never =
    (member === 'skipIf' && truthOf(condition, scopes) === true) ||
    (member === 'runIf' && truthOf(condition, scopes) === false) ||
    ((member === 'each' || member === 'for') && isEmptyList(condition, scopes));
  return chain && { ...chain, skips: chain.skips || never };
}

/** `{ skip: true }`, `{ todo: true }` or `{ fails: true }`. */
function isSkipOption(option: Place, scopes: Scopes): boolean {
  if (option.node.type !== 'ObjectExpression') return false;
  return childrenOf(option, 'properties').some((property) => {
    const name = (property.node.key as Node | undefined)?.name as string;
    return SKIPPING.has(name) && truthOf(childrenOf(property, 'value')[0], scopes) === true;
  });
}

/** The text of a string or template; null: it is neither. */
function textOf(node: Node): string | null {
  if (node.type === 'Literal') return typeof node.value === 'string' ? node.value : null;
  if (node.type !== 'TemplateLiteral') return null;
  const quasis = node.quasis as { value: { cooked: string } }[];
  return quasis.map(({ value }) => value.cooked).join('…');
}
