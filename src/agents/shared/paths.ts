import { accessSync, constants, statSync } from 'node:fs';
import { delimiter, isAbsolute, join, sep } from 'node:path';

/** The first program of this name on PATH; null: none. Relative entries are ignored: their meaning depends on the working directory. */
export function onPath(name: string, path: string): string | null {
  const file = process.platform === 'win32' ? `${name}.exe` : name;
  const folders = path.split(delimiter).filter((folder) => isAbsolute(folder));
  const found = folders.find((folder) => isProgram(`${folder}${sep}${file}`));
  return found === undefined ? null : join(found, file);
}

function isProgram(file: string): boolean {
  try {
    if (!statSync(file, { throwIfNoEntry: false })?.isFile()) return false;
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
