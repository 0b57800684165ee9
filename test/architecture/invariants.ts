// `R1` … `R10` refer to the rules of INVARIANTS.md. Every cited rule exists there, and every rule names tests that exist.

/** A test that a rule names: the file, and the test's name or the beginning of it; null: the whole file. */
type NamedTest = { file: string; name: string | null };
/** `missing`: the parts of a rule that it does not have. */
export type Rule = { id: string; missing: string[]; tests: NamedTest[] };

/** Every rule says what holds, what it forbids, and which fault it prevents. */
const PARTS = ['**Rule.**', '**It forbids**', '**Fault it prevents.**'];

/** The rules of INVARIANTS.md: headings `## R1 …`, with tests as list items ``- `path` `` or ``- `path` › name``. */
export function rulesIn(invariants: string): Rule[] {
  return invariants
    .split(/^## (?=R\d+ )/m)
    .slice(1)
    .map((section) => {
      const [id = ''] = section.split(' ', 1);
      const tests = [...section.matchAll(/^- `([^`]+\.ts)`(?: › (.+))?$/gm)];
      const missing = PARTS.filter((part) => !section.includes(`\n${part} `));
      return { id, missing, tests: tests.map(([, file = '', name]) => ({ file, name: name ?? null })) };
    });
}

/** What is wrong with the rules themselves. `read` gives a file's text, or null where there is no such file. */
export function faultsOfRules(rules: readonly Rule[], read: (path: string) => string | null): string[] {
  return rules.flatMap(({ id, missing, tests }, at) => [
    ...(id === `R${at + 1}` ? [] : [`${id} stands where R${at + 1} should`]),
    ...missing.map((part) => `${id} has no part ${part}`),
    ...(tests.length > 0 ? [] : [`${id} names no test`]),
    ...tests.flatMap(({ file, name }) => {
      const text = read(file);
      if (text === null) return [`${id} names ${file}, which does not exist`];
      return name === null || hasTest(text, name) ? [] : [`${id}: ${file} has no test “${name}”`];
    }),
  ]);
}

/** The rules that a text cites and that do not exist. */
export function unknownRules(text: string, rules: readonly Rule[]): string[] {
  const known = new Set(rules.map(({ id }) => id));
  return [...new Set(text.match(/(?<![\w-])R[1-9]\d*(?![\w-])/g) ?? [])].filter((id) => !known.has(id));
}

/** Whether a string in the file has that name. A comment is no test, and neither is one that is skipped. */
function hasTest(text: string, name: string): boolean {
  const lines = text.replaceAll(/\\(['"`])/g, '$1').split('\n');
  return lines.some((line) => {
    const [before = '', after] = line.split(name, 2);
    return after !== undefined && /['"`]/.test(before) && !/^\s*(\/\/|\/?\*)|\.(skip|todo)\b/.test(before);
  });
}
