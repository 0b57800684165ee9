// Folders that a reader can survey: few files each, and none that says nothing about what is in it.
import { posix } from 'node:path';
import { isTest } from './import-rules.ts';

/** The most TypeScript files that a folder may hold, without tests. The engine is read as a whole, so its folders ("rooms") are smaller. */
export const MOST_FILES = 12;
export const MOST_FILES_OF_ENGINE = 10;
const MEANINGLESS = ['utils', 'util', 'helpers', 'misc', 'common', 'lib'];

/** Folders that hold too many files, in words. */
export function crowdedFolders(paths: readonly string[]): string[] {
  return [...filesOf(paths)].flatMap(([folder, count]) => {
    const most = /^engine(\/|$)/.test(folder) ? MOST_FILES_OF_ENGINE : MOST_FILES;
    return count > most ? [`${folder} holds ${count} files, and may hold ${most}`] : [];
  });
}

function filesOf(paths: readonly string[]): Map<string, number> {
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

/** What is wrong with the table of rooms in a document: a room has no row, or its first file does not exist. `paths`: of `src/`. */
export function faultsOfRooms(document: string, paths: readonly string[]): string[] {
  const rows = document.matchAll(/^\| `(engine\/[\w-]+)` \| `([\w-]+\.ts)` \|/gm);
  const first = new Map([...rows].map(([, room = '', file = '']) => [room, file]));
  const rooms = new Set(paths.map(posix.dirname).filter((folder) => folder.startsWith('engine/')));
  return [
    ...[...rooms].filter((room) => !first.has(room)).map((room) => `${room} has no file to read first`),
    ...[...first]
      .map(([room, file]) => `${room}/${file}`)
      .filter((path) => !paths.includes(path))
      .map((path) => `${path} is not there`),
  ];
}
