// INVARIANTS.md is what `R1` … `R10` refer to: every citation leads there, and every rule names tests that exist.

/** A test that a rule names: the file, and the test's name or the beginning of it; null: the whole file. */
type NamedTest = { file: string; name: string | null };
export type Rule = { id: string; tests: NamedTest[] };

/** The rules of INVARIANTS.md: headings `## R1 …`, with tests as list items ``- `path` `` or ``- `path` › name``. */
export function rulesIn(invariants: string): Rule[] {
  return invariants
    .split(/^## (?=R\d+ )/m)
    .slice(1)
    .map((section) => {
      const [id = ''] = section.split(' ', 1);
      const tests = [...section.matchAll(/^- `([^`]+\.ts)`(?: › (.+))?$/gm)];
      return { id, tests: tests.map(([, file = '', name]) => ({ file, name: name ?? null })) };
    });
}

/** What is wrong with the rules themselves. `read` gives a file's text, or null where there is no such file. */
export function faultsOfRules(rules: readonly Rule[], read: (path: string) => string | null): string[] {
  return rules.flatMap(({ id, tests }, at) => [
    ...(id === `R${at + 1}` ? [] : [`${id} stands where R${at + 1} should`]),
    ...(tests.length > 0 ? [] : [`${id} names no test`]),
    ...tests.flatMap(({ file, name }) => {
      const text = read(file);
      if (text === null) return [`${id} names ${file}, which does not exist`];
      return name === null || spoken(text).includes(name) ? [] : [`${id}: ${file} has no test “${name}”`];
    }),
  ]);
}

/** The rules that a text cites and that are not there. */
export function unknownRules(text: string, rules: readonly Rule[]): string[] {
  const known = new Set(rules.map(({ id }) => id));
  return [...new Set(text.match(/(?<![\w-])R[1-9]\d*(?![\w-])/g) ?? [])].filter((id) => !known.has(id));
}

/** A file's text with the quotes in its strings as they are spoken. */
const spoken = (text: string) => text.replaceAll(/\\(['"`])/g, '$1');
