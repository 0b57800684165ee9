import { accessSync, constants, statSync } from 'node:fs';
import { delimiter, isAbsolute, join, resolve } from 'node:path';

/** A program named in the settings: a whole path, or a name to be looked for. Null: not there, or not executable. */
export function runnable(name: string, path: string): string | null {
  if (!/[/\\]/.test(name)) return onPath(name, path);
  // A relative path would depend on where we happen to run; settings have been resolved before.
  const file = resolve(name);
  return isProgram(file) ? file : null;
}

/** The first on PATH. Relative entries are passed over: they mean another folder in every working directory. */
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
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    return false;
  }
}
