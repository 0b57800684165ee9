// The imports that web/ may have. And it must not turn text into markup or code, because agents and other people write that text.
import { isBuiltin } from 'node:module';
import { posix } from 'node:path';
import { importsOf } from './import-rules.ts';
import { isTest, outlineOf } from './outline.ts';
import { type Node, placesIn } from './syntax.ts';

const CORE = 'src/core/';
const ENTRY = 'throughline/client';

/** Every import rule that a file of the page breaks, as a sentence. `path` is relative to the checkout. */
export function brokenPageImports(path: string, source: string): string[] {
  return importsOf(path, source).flatMap((specifier) => whyNot(path, specifier) ?? []);
}

function whyNot(path: string, specifier: string | undefined): string | null {
  if (specifier === undefined) return 'a computed import cannot be checked';
  if (specifier.startsWith('.')) {
    const target = posix.join(posix.dirname(path), specifier);
    if (isTest(target) && !isTest(path)) return `imports ${specifier}, which is a test`;
    const isAllowed = target.startsWith('web/') || target.startsWith(CORE) || isTest(path);
    return isAllowed ? null : `imports ${target}: the page uses ${ENTRY} and ${CORE} only`;
  }
  if (isTest(path)) return null;
  if (isBuiltin(specifier)) return `runs in browsers and imports ${specifier}`;
  const isOurs = specifier === 'throughline' || specifier.startsWith('throughline/');
  return isOurs && specifier !== ENTRY ? `imports ${specifier}: the page uses ${ENTRY} and ${CORE} only` : null;
}

/** Names of functions and properties that turn text into markup or code. The Content Security Policy of the page blocks only some of them. */
const UNSAFE = new Set([
  'dangerouslySetInnerHTML',
  'innerHTML',
  'outerHTML',
  'insertAdjacentHTML',
  'createContextualFragment',
  'setHTMLUnsafe',
  'parseHTMLUnsafe',
  'DOMParser',
  'srcdoc',
  'srcDoc',
  'eval',
]);
const NAMES = new Set(['Identifier', 'JSXIdentifier', 'Literal']);

/** All of these names that the file uses, in code and not in comments. Not seen: names that are computed. */
export function unsafeMarkup(path: string, source: string): string[] {
  const named = placesIn(path, source).flatMap(({ node }) => {
    const name = nameIn(node);
    return name !== null && UNSAFE.has(name) ? [name] : [];
  });
  const globals = outlineOf(path, source).globals.flatMap(({ name, how }) => {
    if (name === 'Function') return how === 'instanceof' ? [] : [name];
    return name === 'document' && /^write(ln)?$/.test(how ?? '') ? ['document.write'] : [];
  });
  return [...named, ...globals];
}

function nameIn(node: Node): string | null {
  if (!NAMES.has(node.type)) return null;
  const name = node.name ?? node.value;
  return typeof name === 'string' ? name : null;
}
