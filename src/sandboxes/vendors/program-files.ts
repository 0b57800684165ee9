import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path/posix';
import type { BridgeProgram } from './machine-bridge.ts';

/** Imports of other sources. The published program is one file and has none. */
const IMPORTED = /(?:from|import) ["'](\.[^"']+)["']/g;

/** A program with all sources that it needs. `main`: its path below `root`. */
export async function programFiles(root: URL, main: string): Promise<BridgeProgram> {
  const files: { name: string; content: Buffer }[] = [];
  const names = new Set([main]);
  const hash = createHash('sha256');
  for (const name of names) {
    const content = await readFile(new URL(name, root));
    files.push({ name, content });
    hash.update(`${name}\0`).update(content).update('\0');
    for (const [, path = ''] of content.toString().matchAll(IMPORTED)) names.add(join(dirname(name), path));
  }
  return { files, main, version: hash.digest('hex').slice(0, 16) };
}
