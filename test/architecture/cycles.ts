// Finds circular imports, `import type` included. Files in such a circle can only be understood together.
import { posix } from 'node:path';
import { importsOf } from './import-rules.ts';

/**
 * One cycle for each group of files that reach each other by imports, as the list of its files in the order of the
 * imports; the last one imports the first. Of a group with several cycles, a shortest one through its first file is shown.
 */
export function importCycles(files: readonly (readonly [path: string, source: string])[]): string[][] {
  const imports = new Map(files.map(([path, source]) => [path, importedFiles(path, source)]));
  const grouped = new Set<string>();
  return files
    .map(([path]) => path)
    .sort()
    .flatMap((path) => {
      if (grouped.has(path)) return [];
      const cycle = wayBack(path, imports);
      if (cycle.length === 0) return [];
      for (const file of reachedFrom(path, imports)) if (reachedFrom(file, imports).has(path)) grouped.add(file);
      return [cycle];
    });
}

/** The files that a file imports, as paths from the same root. */
export function importedFiles(path: string, source: string): string[] {
  return importsOf(path, source)
    .filter((specifier) => specifier?.startsWith('.'))
    .map((specifier) => posix.join(posix.dirname(path), specifier ?? ''));
}

type Imports = ReadonlyMap<string, readonly string[]>;

function reachedFrom(start: string, imports: Imports): Set<string> {
  const reached = new Set<string>();
  const open = [start];
  for (let file = open.pop(); file !== undefined; file = open.pop()) {
    for (const next of imports.get(file) ?? []) {
      if (!reached.has(next)) open.push(next);
      reached.add(next);
    }
  }
  return reached;
}

/** The shortest chain of imports from a file back to itself, without the repeated end. Empty: there is none. */
function wayBack(start: string, imports: Imports): string[] {
  const ways: string[][] = [[start]];
  const seen = new Set<string>();
  for (const way of ways) {
    for (const next of imports.get(way.at(-1) ?? '') ?? []) {
      if (next === start) return way;
      if (!seen.has(next)) ways.push([...way, next]);
      seen.add(next);
    }
  }
  return [];
}
