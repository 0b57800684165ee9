// Folders have few files and a name that says what is in them.
import { posix } from 'node:path';
import { isTest } from './outline.ts';

/** The most TypeScript files that a folder may hold, without tests. The engine is read as a whole, so its folders are smaller. */
export const MOST_FILES = 12;
export const MOST_FILES_OF_ENGINE = 10;
const MEANINGLESS = ['utils', 'util', 'helpers', 'misc', 'common', 'lib'];

/** Folders with too many files, each as a sentence. */
export function crowdedFolders(paths: readonly string[]): string[] {
  return [...fileCounts(paths)].flatMap(([folder, count]) => {
    const most = /^engine(\/|$)/.test(folder) ? MOST_FILES_OF_ENGINE : MOST_FILES;
    return count > most ? [`${folder} has ${count} files; the limit is ${most}`] : [];
  });
}

function fileCounts(paths: readonly string[]): Map<string, number> {
  const files = new Map<string, number>();
  for (const folder of paths.filter((path) => !isTest(path)).map(posix.dirname)) {
    files.set(folder, (files.get(folder) ?? 0) + 1);
  }
  return files;
}

/** Folders whose name says nothing about what is in them. */
export function meaninglessFolders(paths: readonly string[]): string[] {
  const folders = new Set(paths.flatMap((path) => posix.dirname(path).split('/')));
  return MEANINGLESS.filter((name) => folders.has(name));
}

/** Every fault in the table of the folders of the engine: a folder has no row, or its first file does not exist. `paths`: of `src/`. */
export function faultsOfEngineFolders(document: string, paths: readonly string[]): string[] {
  const rows = document.matchAll(/^\| `(engine\/[\w-]+)` \| `([\w-]+\.ts)` \|/gm);
  const firstFiles = new Map([...rows].map(([, folder = '', file = '']) => [folder, file]));
  const folders = new Set(paths.map(posix.dirname).filter((folder) => folder.startsWith('engine/')));
  return [
    ...[...folders].filter((folder) => !firstFiles.has(folder)).map((folder) => `${folder} has no file to read first`),
    ...[...firstFiles]
      .map(([folder, file]) => `${folder}/${file}`)
      .filter((path) => !paths.includes(path))
      .map((path) => `${path} does not exist`),
  ];
}
