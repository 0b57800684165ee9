import { accessSync, constants, realpathSync, statSync } from 'node:fs';
import { basename, delimiter, dirname, isAbsolute, join, resolve } from 'node:path';

/** A program named in the settings: a path, or a name to look for on PATH. Null: not found, or not executable. */
export function runnable(name: string, path: string): string | null {
  if (!/[/\\]/.test(name)) return onPath(name, path);
  // Relative paths of settings were resolved when they were read.
  const file = resolve(name);
  return isProgram(file) ? file : null;
}

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
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    return false;
  }
}

/** Resolves links as far as the path exists, so that it has the same name before an agent creates it and afterwards. */
export function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    const parent = dirname(path);
    return parent === path ? path : join(realPath(parent), basename(path));
  }
}
