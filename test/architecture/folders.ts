// Folders have a name that says what is in them.
import { posix } from 'node:path';

const MEANINGLESS = ['utils', 'util', 'helpers', 'misc', 'common', 'lib'];

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
