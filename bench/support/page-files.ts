import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';

/** How many bytes of a built page a browser loads at first, compressed by gzip. Vite lists all of these files in the document. */
export function initialBytes(folder: string): { scripts: number; styles: number } {
  const document = readFileSync(join(folder, 'index.html'), 'utf8');
  const named = [...document.matchAll(/(?:src|href)="(\/assets\/[^"]+)"/g)].map(([, path = '']) => path);
  const bytes = (end: string) =>
    named
      .filter((path) => path.endsWith(end))
      .reduce((sum, path) => sum + gzipSync(readFileSync(join(folder, path))).length, 0);
  return { scripts: bytes('.js'), styles: bytes('.css') };
}
