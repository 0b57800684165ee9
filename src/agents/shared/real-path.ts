import { realpathSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';

/** A path, its links resolved as far as it is there: it has one name before an agent makes it and afterwards. */
export function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    const parent = dirname(path);
    return parent === path ? path : join(realPath(parent), basename(path));
  }
}
