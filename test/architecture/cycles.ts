// Finds circular imports, `import type` included. Files in a cycle can only be understood together.
import { posix } from 'node:path';
import { importsOf } from './import-rules.ts';

/**
 * One cycle for each group of files that reach each other by imports, as the list of its files in the order of the
 * imports; the last one imports the first. If a group has several cycles, this is a shortest one through its first file.
 */
export function importCycles(files: readonly (readonly [path: string, source: string])[]): string[][] {
  const imports = new Map(files.map(([path, source]) => [path, importedFiles(path, source)]));
  const reported = new Set<string>();
  return files
    .map(([path]) => path)
    .sort()
    .flatMap((path) => {
      if (reported.has(path)) return [];
      const cycle = shortestCycle(path, imports);
      if (cycle.length === 0) return [];
      for (const file of reachableFrom(path, imports)) if (reachableFrom(file, imports).has(path)) reported.add(file);
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

function reachableFrom(start: string, imports: Imports): Set<string> {
  const reached = new Set<string>();
  const toVisit = [start];
  for (let file = toVisit.pop(); file !== undefined; file = toVisit.pop()) {
    for (const next of imports.get(file) ?? []) {
      if (!reached.has(next)) toVisit.push(next);
      reached.add(next);
    }
  }
  return reached;
}

/** The shortest chain of imports from a file back to itself, without the repeated end. Empty: there is none. */
function shortestCycle(start: string, imports: Imports): string[] {
  const chains: string[][] = [[start]];
  const seen = new Set<string>();
  for (const chain of chains) {
    for (const next of imports.get(chain.at(-1) ?? '') ?? []) {
      if (next === start) return chain;
      if (!seen.has(next)) chains.push([...chain, next]);
      seen.add(next);
    }
  }
  return [];
}
