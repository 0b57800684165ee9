// A file's syntax tree, flattened: every node with the way up to the root.
import { parseSync } from 'vite';

export type Node = { type: string; [key: string]: unknown };
/** `key` is the field of the parent that holds the node. */
export type Place = { node: Node; key: string; parent: Place | undefined };

/** Every node of the file, parents before children. Throws when the text does not parse. */
export function placesIn(path: string, source: string): Place[] {
  const { program, errors } = parseSync(path, source);
  if (errors[0]) throw new SyntaxError(`${path}: ${errors[0].message}`);
  return [...walk(program, '', undefined)];
}

function* walk(value: unknown, key: string, parent: Place | undefined): Generator<Place> {
  if (Array.isArray(value)) {
    for (const item of value) yield* walk(item, key, parent);
  } else if (isNode(value)) {
    const place = { node: value, key, parent };
    yield place;
    for (const [name, child] of Object.entries(value)) yield* walk(child, name, place);
  }
}

const isNode = (value: unknown): value is Node =>
  typeof value === 'object' && value !== null && 'type' in value && typeof value.type === 'string';
