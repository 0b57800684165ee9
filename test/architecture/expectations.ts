// Finds tests that expect nothing: they pass whatever the program does.
import { isDead } from './dead-code.ts';
import { declarationOf, isReference, ownerOf } from './names.ts';
import type { Node, Place } from './syntax.ts';
import { type At, type Files, fileNamedBy, type Parsed, parsed, placesBelow } from './test-files.ts';

/** Files whose errors are expectations: the random sequences shorten what fails, and a plain error says enough. */
const EXPECTING_BY_ERRORS = ['test/model-based/engine/promises.ts'];

/**
 * Whether the code at a place has an expectation such as `expect(x).toBe(1)`, or names something that has one: a function, a class, or
 * a variable, of this file or of one that it imports. Not seen: whether the name is called, whether its call reaches the expectation,
 * and whether the expectation can fail, unless it compares literals.
 */
export function expectsSomething({ file, place }: At, files: Files, seen = new Set<Node>()): boolean {
  if (seen.has(place.node)) return false;
  seen.add(place.node);
  const tree = parsed(file, files);
  const running = placesBelow(place, tree).filter((below) => !isDeadWithin(below, place, tree));
  const hasError = EXPECTING_BY_ERRORS.includes(file) && running.some(({ node }) => node.type === 'ThrowStatement');
  if (hasError || running.some((below) => isExpectation(below, tree))) return true;
  return running.some((below) => {
    const named = isReference(below) ? declaredAs(below.node.name as string, { file, place: below }, files) : null;
    return named !== null && expectsSomething(named, files, seen);
  });
}

function isDeadWithin(place: Place, root: Place, { scopes }: Parsed): boolean {
  for (let at = place; at.node !== root.node && at.parent !== undefined; at = at.parent)
    if (isDead(at, scopes)) return true;
  return false;
}

/** `expect(x).toBe(1)`, `expect.poll(f).not.toBe(1)`. `expect(x)` alone checks nothing, and `expect(1).toBe(1)` no program. */
function isExpectation(place: Place, { scopes }: Parsed): boolean {
  if (place.node.type !== 'CallExpression') return false;
  let at = place.node.callee as Node;
  if (at.type !== 'MemberExpression') return false;
  while (at.type === 'MemberExpression') at = at.object as Node;
  if (at.type !== 'CallExpression') return false;
  const callee = at.callee as Node;
  const name = (callee.type === 'MemberExpression' ? callee.object : callee) as Node;
  if (name.type !== 'Identifier' || name.name !== 'expect') return false;
  const declared = declarationOf('expect', place, scopes);
  if (declared !== null && isFunction(ownerOf(declared))) return false;
  const values = [...(at.arguments as Node[]), ...(place.node.arguments as Node[])];
  return (at.arguments as Node[]).length > 0 && values.some(({ type }) => type !== 'Literal');
}

/** Whether this declares a function: `function name() {…}` or `const name = () => …`. */
export const isFunction = ({ node }: Place) =>
  /^(FunctionDeclaration|ClassDeclaration)$/.test(node.type) ||
  /^(ArrowFunction|Function)Expression$/.test((node.init as Node | null | undefined)?.type ?? '');

/** Where a name is declared, also in the file that it is imported from. Null: it is a global, or of a file that is no test file. */
function declaredAs(name: string, { file, place }: At, files: Files): At | null {
  const declared = declarationOf(name, place, parsed(file, files).scopes);
  const owner = declared === null ? null : ownerOf(declared);
  if (owner === null || /^(Function|ArrowFunction)Expression$/.test(owner.node.type)) return null;
  // A parameter is given by a caller, and not declared in the function.
  if (owner.node.type === 'FunctionDeclaration' && owner.node.id !== declared?.node) return null;
  if (owner.node.type !== 'ImportSpecifier') return { file, place: owner };
  const from = fileNamedBy((owner.parent as Place).node, file);
  return from === null ? null : exportedAs((owner.node.imported as Node).name as string, from, files);
}

function exportedAs(name: string, file: string, files: Files): At | null {
  if (!files.has(file)) return null;
  const { places } = parsed(file, files);
  const again = places.find(({ node }) => node.type === 'ExportSpecifier' && (node.exported as Node).name === name);
  const local = ((again?.node.local as Node | undefined)?.name as string | undefined) ?? name;
  const from = fileNamedBy(again?.parent?.node ?? { type: '' }, file);
  if (from !== null) return exportedAs(local, from, files);
  return places[0] === undefined ? null : declaredAs(local, { file, place: places[0] }, files);
}
