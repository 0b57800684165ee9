// What the rules need to know of a file: its imports, and the globals that it uses. Every file is parsed once for all rules.
import { type GlobalUse, globalsIn } from './names.ts';
import { type Node, placesIn } from './syntax.ts';

/** `module` undefined: its name is computed. `names`: what is imported from it; null: all of it. */
export type Import = { module: string | undefined; names: readonly string[] | null };
/** `isAsync`: the file has asynchronous code. */
export type Outline = { imports: readonly Import[]; globals: readonly GlobalUse[]; isAsync: boolean };

export function outlineOf(path: string, source: string): Outline {
  const text = `${path}\n${source}`;
  const known = outlines.get(text);
  if (known !== undefined) return known;
  const places = placesIn(path, source);
  const outline = {
    imports: places.flatMap(({ node }) => importedBy(node)),
    // No rule looks for globals in tests.
    globals: isTest(path) ? [] : globalsIn(places),
    isAsync: places.some(({ node }) => isAsync(node)),
  };
  outlines.set(text, outline);
  return outline;
}

/** By path and text. The syntax trees are not kept: they are large. */
const outlines = new Map<string, Outline>();

export const isTest = (path: string) => /\.test\.tsx?$/.test(path);

const isAsync = ({ type, async, await: waits }: Node) => type === 'AwaitExpression' || async === true || waits === true;

const IMPORTING = new Set(
  'ImportDeclaration ExportNamedDeclaration ExportAllDeclaration ImportExpression TSImportType'.split(' '),
);

/** The module that a node names, if it is an import of any kind. */
function importedBy({ type, source, specifiers }: Node): Import[] {
  const from = IMPORTING.has(type) ? (source as { value?: unknown } | null) : null;
  if (!from) return [];
  const names = (specifiers as Node[] | undefined)?.map(({ imported, local, type: kind }) => {
    const name = (kind === 'ExportSpecifier' ? local : imported) as Node | undefined;
    return name?.name as string | undefined;
  });
  const isWhole = names === undefined || names.includes(undefined);
  return [
    { module: typeof from.value === 'string' ? from.value : undefined, names: isWhole ? null : (names as string[]) },
  ];
}
