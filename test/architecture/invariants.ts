// `R1` … `R10` refer to the rules of INVARIANTS.md. Every cited rule exists there, and every rule names tests that exist and can fail.
import { testsIn } from './running-tests.ts';
import type { Files } from './test-files.ts';

/** A test that a rule names: the file, and the test's name or the beginning of it; null: the whole file. */
type NamedTest = { file: string; name: string | null };
/** `missing`: the parts of a rule that it does not have. */
export type Rule = { id: string; missing: string[]; tests: NamedTest[] };

/** Every rule says what holds, what it forbids, and which fault it prevents. */
const PARTS = ['**Rule.**', '**It forbids**', '**Fault it prevents.**'];

/** The rules of INVARIANTS.md: headings `## R1 …`, with tests as list items ``- `path` `` or ``- `path` › name``. A name may have several lines. */
export function rulesIn(invariants: string): Rule[] {
  return invariants
    .split(/^## (?=R\d+ )/m)
    .slice(1)
    .map((section) => {
      const [id = ''] = section.split(' ', 1);
      const items = section.replaceAll(/\n {2,}(?=\S)/g, ' ');
      const tests = [...items.matchAll(/^- `([^`]+\.ts)`(?: › (.+))?$/gm)];
      const missing = PARTS.filter((part) => !section.includes(`\n${part} `));
      return { id, missing, tests: tests.map(([, file = '', name]) => ({ file, name: name ?? null })) };
    });
}

/** Every fault in the rules themselves. `files` has every test file, and every file that a test imports tests from. */
export function faultsOfRules(rules: readonly Rule[], files: Files): string[] {
  return rules.flatMap(({ id, missing, tests }, at) => [
    ...(id === `R${at + 1}` ? [] : [`${id} is in the place of R${at + 1}`]),
    ...missing.map((part) => `${id} has no part ${part}`),
    ...(tests.length > 0 ? [] : [`${id} names no test`]),
    ...tests.flatMap(({ file, name }) => {
      if (!files.has(file)) return [`${id} names ${file}, which does not exist`];
      const found = testsIn(file, files);
      if (name !== null) {
        return found.some((one) => one.name.includes(name) && one.checks())
          ? []
          : [`${id}: ${file} has no test “${name}” that runs and expects something`];
      }
      const allCheck = found.length > 0 && found.every(({ checks }) => checks());
      return allCheck ? [] : [`${id} names ${file}, which has no test, or one that is skipped or expects nothing`];
    }),
  ]);
}

/** The rules that a text cites and that do not exist. */
export function unknownRules(text: string, rules: readonly Rule[]): string[] {
  const known = new Set(rules.map(({ id }) => id));
  return [...new Set(text.match(/(?<![\w-])R[1-9]\d*(?![\w-])/g) ?? [])].filter((id) => !known.has(id));
}
