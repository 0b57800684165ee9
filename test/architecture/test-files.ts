// The files that have tests, or are imported by tests, and their syntax trees.
import { posix } from 'node:path';
import { type Scopes, scopesIn } from './names.ts';
import { type Node, type Place, placesIn } from './syntax.ts';

/** Path, relative to the checkout, and text. */
export type Files = ReadonlyMap<string, string>;
export type At = { file: string; place: Place };
export type Parsed = { places: readonly Place[]; scopes: Scopes };

/** Kept by path and text, because a suite is looked for in many files. */
export function parsed(file: string, files: Files): Parsed {
  const text = files.get(file) ?? '';
  const known = trees.get(`${file}\n${text}`);
  if (known !== undefined) return known;
  const places = placesIn(file, text);
  const tree = { places, scopes: scopesIn(places) };
  trees.set(`${file}\n${text}`, tree);
  return tree;
}

const trees = new Map<string, Parsed>();

/** The file that an `import` or `export … from` names, if it has a relative path. */
export function fileNamedBy({ source }: Node, file: string): string | null {
  const { value } = (source ?? {}) as { value?: unknown };
  return typeof value === 'string' && value.startsWith('.') ? posix.join(posix.dirname(file), value) : null;
}

/** The nodes in one field of a node, as places. */
export function childrenOf(parent: Place, key: string): Place[] {
  const value = parent.node[key] as Node | Node[] | null | undefined;
  return [value ?? []].flat().map((node) => ({ node, key, parent }));
}

/** The place itself and all places below it. */
export function placesBelow(place: Place, { places }: Parsed): Place[] {
  const from = places.findIndex(({ node }) => node === place.node);
  const { end } = place.node as Node & { end: number };
  const next = places.findIndex(({ node }, at) => at > from && (node as Node & { start: number }).start >= end);
  return places.slice(from, next === -1 ? undefined : next).filter((below) => isBelow(below, place));
}

function isBelow(place: Place, above: Place): boolean {
  let at: Place | undefined = place;
  while (at !== undefined && at.node !== above.node) at = at.parent;
  return at !== undefined;
}
