// A small file with one importer in its folder belongs into that importer: a reader would have to open both anyway.
import { posix } from 'node:path';
import { importedFiles } from './cycles.ts';
import { isTest } from './outline.ts';

/** A file with at least this many lines may stand alone, whatever imports it. */
export const SMALL = 50;

/** Small files with one importer, in their own folder. `standsAlone`: files that are looked for by their name. */
export function straySmallFiles(
  files: readonly (readonly [path: string, source: string])[],
  standsAlone: (path: string) => boolean = () => false,
): string[] {
  const importers = new Map<string, Set<string>>();
  for (const [path, source] of files.filter(([each]) => !isTest(each))) {
    for (const imported of importedFiles(path, source)) {
      importers.set(imported, (importers.get(imported) ?? new Set()).add(path));
    }
  }
  return files.flatMap(([path, source]) => {
    const [only, ...others] = importers.get(path) ?? [];
    const lines = source.split('\n').length - 1;
    if (lines >= SMALL || only === undefined || others.length > 0 || standsAlone(path)) return [];
    return posix.dirname(only) === posix.dirname(path) ? [`${path} (${lines} lines) belongs into ${only}`] : [];
  });
}
