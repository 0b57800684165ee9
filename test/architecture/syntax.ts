// A file's syntax tree, flattened: every node with its parents.
import { parseSync } from 'vite';

export type Node = { type: string; [key: string]: unknown };
/** `key` is the field of the parent that holds the node. */
export type Place = { node: Node; key: string; parent: Place | undefined };

/** Every node of the file, parents before children. Throws when the text does not parse. */
export function placesIn(path: string, source: string): Place[] {
  const { program, errors } = parseSync(path, source);
  if (errors[0]) throw new SyntaxError(`${path}: ${errors[0].message}`);
  const places: Place[] = [];
  walk(program, '', undefined, places);
  return places;
}

function walk(value: unknown, key: string, parent: Place | undefined, places: Place[]): void {
  if (Array.isArray(value)) {
    for (const item of value) walk(item, key, parent, places);
  } else if (isNode(value)) {
    const place = { node: value, key, parent };
    places.push(place);
    for (const name in value) walk(value[name], name, place, places);
  }
}

const isNode = (value: unknown): value is Node =>
  typeof value === 'object' && value !== null && 'type' in value && typeof value.type === 'string';
