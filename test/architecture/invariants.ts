// `R1` … `R10` refer to the rules of INVARIANTS.md. Every cited rule exists there, and every rule names tests that exist.
import { type Node, type Place, placesIn } from './syntax.ts';

/** A test that a rule names: the file, and the test's name or the beginning of it; null: the whole file. */
type NamedTest = { file: string; name: string | null };
/** `missing`: the parts of a rule that it does not have. */
export type Rule = { id: string; missing: string[]; tests: NamedTest[] };

/** Every rule says what holds, what it forbids, and which fault it prevents. */
const PARTS = ['**Rule.**', '**It forbids**', '**Fault it prevents.**'];

/** The rules of INVARIANTS.md: headings `## R1 …`, with tests as list items ``- `path` `` or ``- `path` › name``. */
export function rulesIn(invariants: string): Rule[] {
  return invariants
    .split(/^## (?=R\d+ )/m)
    .slice(1)
    .map((section) => {
      const [id = ''] = section.split(' ', 1);
      const tests = [...section.matchAll(/^- `([^`]+\.ts)`(?: › (.+))?$/gm)];
      const missing = PARTS.filter((part) => !section.includes(`\n${part} `));
      return { id, missing, tests: tests.map(([, file = '', name]) => ({ file, name: name ?? null })) };
    });
}

/** Every fault in the rules themselves. `read` returns the text of a file; null: it does not exist. */
export function faultsOfRules(rules: readonly Rule[], read: (path: string) => string | null): string[] {
  return rules.flatMap(({ id, missing, tests }, at) => [
    ...(id === `R${at + 1}` ? [] : [`${id} is in the place of R${at + 1}`]),
    ...missing.map((part) => `${id} has no part ${part}`),
    ...(tests.length > 0 ? [] : [`${id} names no test`]),
    ...tests.flatMap(({ file, name }) => {
      const text = read(file);
      if (text === null) return [`${id} names ${file}, which does not exist`];
      if (name !== null) return hasTest(file, text, name) ? [] : [`${id}: ${file} has no test “${name}”`];
      return hasTest(file, text, null) ? [] : [`${id} names ${file}, which has no test, or one that is skipped`];
    }),
  ]);
}

/** The rules that a text cites and that do not exist. */
export function unknownRules(text: string, rules: readonly Rule[]): string[] {
  const known = new Set(rules.map(({ id }) => id));
  return [...new Set(text.match(/(?<![\w-])R[1-9]\d*(?![\w-])/g) ?? [])].filter((id) => !known.has(id));
}

/**
 * Whether a test of the file has that name, and is not skipped. `name` null: whether it has tests, and none is skipped. A test is a call
 * of `test` or `it`, whose first argument is its name. Comments and other strings do not count.
 */
function hasTest(file: string, text: string, name: string | null): boolean {
  const tests = placesIn(file, text).flatMap((place) => {
    const call = callIn(place.node);
    return call !== null && TEST.has(call.of) && call.name !== null ? [{ place, name: call.name }] : [];
  });
  if (name === null) return tests.length > 0 && !tests.some(({ place }) => isSkipped(place));
  return tests.some((one) => one.name.includes(name) && !isSkipped(one.place));
}

const TEST = new Set(['test', 'it']);
const SUITE = new Set(['describe', 'suite']);

/** Skipped by itself, or by a group around it. */
function isSkipped(place: Place | undefined): boolean {
  if (place === undefined) return false;
  const call = callIn(place.node);
  const isTestOrGroup = call !== null && (TEST.has(call.of) || SUITE.has(call.of));
  return (isTestOrGroup && call.skips) || isSkipped(place.parent);
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
    (member === 'skipIf' && condition?.value === true) || (member === 'runIf' && condition?.value === false);
  return chain && { ...chain, skips: chain.skips || never };
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
