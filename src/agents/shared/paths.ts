import { accessSync, constants, statSync } from 'node:fs';
import { delimiter, isAbsolute, join } from 'node:path';

/** The first on PATH. Relative entries are ignored: they mean another folder in every working directory. */
export function onPath(name: string, path: string): string | null {
  const file = process.platform === 'win32' ? `${name}.exe` : name;
  const found = path
    .split(delimiter)
    .filter((folder) => isAbsolute(folder))
    .map((folder) => join(folder, file));
  return found.find(isProgram) ?? null;
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
