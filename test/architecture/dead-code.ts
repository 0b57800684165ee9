// Finds code that never runs, as far as a reader of the file can see that: by literals, and by constants with a literal as their value.
import { declarationOf, ownerOf, type Scopes, WRAPPERS } from './names.ts';
import type { Node, Place } from './syntax.ts';
import { childrenOf } from './test-files.ts';

/** Whether the code around it never runs this place: `if (false) HERE`, `false && HERE`, `return; HERE`, `for (const x of []) HERE`. */
export function isDead(place: Place, scopes: Scopes): boolean {
  const { node, key, parent } = place;
  if (parent === undefined) return false;
  const { type, operator } = parent.node;
  const truth = (field: string) => truthOf(childrenOf(parent, field)[0], scopes);
  if (type === 'IfStatement' || type === 'ConditionalExpression')
    return key !== 'test' && truth('test') === (key === 'alternate');
  if (type === 'LogicalExpression' && operator !== '??' && key === 'right')
    return truth('left') === (operator === '||');
  if (type === 'WhileStatement' && key === 'body') return truth('test') === false;
  if (type === 'ForOfStatement' && key === 'body') return isEmptyList(childrenOf(parent, 'right')[0], scopes);
  // A function can be called before the line at which it is written.
  if (node.type === 'FunctionDeclaration' || !STATEMENTS.has(`${type}.${key}`)) return false;
  const siblings = childrenOf(parent, key);
  const before = siblings.slice(
    0,
    siblings.findIndex((sibling) => sibling.node === node),
  );
  return before.some((statement) => leaves(statement, scopes));
}

const STATEMENTS = new Set(['Program.body', 'BlockStatement.body', 'SwitchCase.consequent']);

/** Whether no statement after this one runs. */
function leaves(statement: Place, scopes: Scopes): boolean {
  const { type } = statement.node;
  if (type === 'BlockStatement') return childrenOf(statement, 'body').some((inner) => leaves(inner, scopes));
  if (type !== 'IfStatement') return LEAVING.has(type);
  const truth = truthOf(childrenOf(statement, 'test')[0], scopes);
  const branches = truth === undefined ? ['consequent', 'alternate'] : [truth ? 'consequent' : 'alternate'];
  return branches.every((key) => childrenOf(statement, key).some((branch) => leaves(branch, scopes)));
}

const LEAVING = new Set(['ReturnStatement', 'ThrowStatement', 'BreakStatement', 'ContinueStatement']);

/** Whether a condition always holds, or never; undefined: it depends. */
export function truthOf(condition: Place | undefined, scopes: Scopes): boolean | undefined {
  if (condition === undefined) return undefined;
  const value = constant(condition, scopes);
  const { node } = value;
  if (node.type === 'Literal') return 'regex' in node || 'bigint' in node ? undefined : Boolean(node.value);
  const inner = (field: string) => truthOf(childrenOf(value, field)[0], scopes);
  if (node.type === 'UnaryExpression' && node.operator === '!') {
    const truth = inner('argument');
    return truth === undefined ? undefined : !truth;
  }
  if (node.type !== 'LogicalExpression' || node.operator === '??') return undefined;
  const [left, right, decisive] = [inner('left'), inner('right'), node.operator === '||'];
  if (left === decisive || right === decisive) return decisive;
  return left === undefined || right === undefined ? undefined : !decisive;
}

/** `[]`, also with a type: `[] as const`. */
export function isEmptyList(list: Place | undefined, scopes: Scopes): boolean {
  if (list === undefined) return false;
  const { type, elements } = constant(list, scopes).node;
  return type === 'ArrayExpression' && (elements as Node[]).length === 0;
}

/** The value of a name that is declared with `const`, without types around it; otherwise the expression itself. */
function constant(expression: Place, scopes: Scopes): Place {
  let at = expression;
  // A constant may be another one. More than a few are no accident.
  for (let steps = 0; steps < 9; steps++) {
    const [inner] = WRAPPERS.has(at.node.type) ? childrenOf(at, 'expression') : constantOf(at, scopes);
    if (inner === undefined) break;
    at = inner;
  }
  return at;
}

function constantOf(place: Place, scopes: Scopes): Place[] {
  if (place.node.type !== 'Identifier') return [];
  const declared = declarationOf(place.node.name as string, place, scopes);
  const owner = declared === null ? null : ownerOf(declared);
  const isConst = owner?.parent?.node.kind === 'const' && owner.node.id === declared?.node;
  return isConst && owner !== null ? childrenOf(owner, 'init') : [];
}
