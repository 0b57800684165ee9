import { globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';

const root = dirname(import.meta.dirname);

/** Commands that the page shows, each with its first words: `throughline task retry`. */
function commandsIn(source: string): string[] {
  return [...source.matchAll(/['"`(]throughline ((?:[a-z]+ ?)+)/g)].map(([, words = '']) => words.trim());
}

test('every command that the page shows exists', () => {
  const document = readFileSync(join(root, '../docs/cli.md'), 'utf8');
  const known = [...document.matchAll(/^##+ throughline (.*)$/gm)].map(([, name = '']) => name);
  const files = globSync('src/**/*.{ts,tsx}', { cwd: root }).filter((file) => !file.endsWith('.test.ts'));
  const shown = files.flatMap((file) =>
    commandsIn(readFileSync(join(root, file), 'utf8')).map((line) => ({ file, line })),
  );
  expect(shown.length).toBeGreaterThan(5);
  // The next word after a group of commands must be one of them.
  const isGroup = (name: string) => known.some((each) => each.startsWith(`${name} `));
  const unknown = shown.filter(({ line }) => {
    const name = known.filter((each) => `${line} `.startsWith(`${each} `)).toSorted((a, b) => b.length - a.length)[0];
    return name === undefined || (isGroup(name) && line !== name);
  });
  expect(unknown).toEqual([]);
});

// Ids are letters, digits and hyphens.
test('values that the page inserts into a command need no shell quoting', () => {
  const files = globSync('src/**/*.{ts,tsx}', { cwd: root }).filter((file) => !file.endsWith('.test.ts'));
  const unquoted = files.flatMap((file) => {
    const lines = readFileSync(join(root, file), 'utf8').matchAll(
      /(?:cli|line)=\{`(?:throughline|curl) [^`$]*\$\{(?!shellWord\(|[\w.]*[iI]d\})[^}]*/g,
    );
    return [...lines].map(([line]) => `${file}: ${line}`);
  });
  expect(unquoted).toEqual([]);
});
