import { execFileSync } from 'node:child_process';
import { globSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

test('the package contains the files that the README links to and that messages name', () => {
  // Without a build: none of these files is built.
  const packed = execFileSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], {
    cwd: ROOT,
    encoding: 'utf8',
  });
  const files = new Set(JSON.parse(packed)[0].files.map(({ path }: { path: string }) => path));
  const linked = [...read('README.md').matchAll(/\]\((?!https?:)([^)#]+)\)/g)].map(([, path = '']) => path);
  const named = globSync('src/**/*.ts', { cwd: ROOT }).flatMap((file) =>
    [...read(file).matchAll(/'[^'\n]*?(docs\/[\w-]+\.md|throughline\.schema\.json)/g)].map(([, path = '']) => path),
  );
  expect(linked.length).toBeGreaterThan(10);
  expect(named.length).toBeGreaterThan(2);
  const inPackage = (path: string) => files.has(path) || [...files].some((file) => `${file}`.startsWith(`${path}/`));
  expect([...linked, ...named].filter((path) => !inPackage(path))).toEqual([]);
});

function read(file: string): string {
  return readFileSync(`${ROOT}${file}`, 'utf8');
}
