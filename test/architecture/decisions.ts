// Decisions are numbered without gaps. Their index says what each decides, and whether another one replaced or amended it.

/** `name` is the file's name in docs/decisions. */
export type Decision = { name: string; text: string };

/** Every fault in the numbers, the titles, the index and the references between decisions, as a sentence. */
export function faultsOfDecisions(decisions: readonly Decision[], index: string): string[] {
  const files = decisions.toSorted((a, b) => (a.name < b.name ? -1 : 1));
  const rows = index.split('\n').filter((line) => /^\| \[\d{4}\]/.test(line));
  return [
    ...files.flatMap(({ name }, at) =>
      numberOf(name) === padded(at + 1) ? [] : [`${name} should be ${padded(at + 1)}`],
    ),
    ...files.flatMap(({ name, text }) =>
      new RegExp(`^# ${numberOf(name)} \\S`).test(text) ? [] : [`${name} does not begin with "# ${numberOf(name)} "`],
    ),
    ...files.flatMap(({ name }, at) =>
      rows[at]?.startsWith(`| [${numberOf(name)}](${name}) | `)
        ? []
        : [`the index has no row for ${name} in its place`],
    ),
    ...rows.slice(files.length).map((row) => `the index has a row too many: ${row}`),
    ...files.flatMap((file, at) => faultsOfStatus(file, files, rows[at] ?? '')),
  ];
}

const STATUSES = { Replaced: 'Replaces', Amended: 'Amends' } as const;

/** If a decision says "Replaced by" or "Amended by" another one, that one must say "Replaces" or "Amends", and the index must say so too. */
function faultsOfStatus({ name, text }: Decision, files: readonly Decision[], row: string): string[] {
  const number = numberOf(name);
  const faults = Object.entries(STATUSES).flatMap(([passive, active]) => {
    const later = [...new Set(linkedNumbers(text, `${passive} by`))];
    const missingThere = later.flatMap((other) => {
      const found = files.find((file) => numberOf(file.name) === other);
      const saysSo = found !== undefined && linkedNumbers(found.text, active).includes(number);
      return saysSo ? [] : [`${name} is ${passive.toLowerCase()} by ${other}, which does not say so`];
    });
    const missingHere = files
      .filter((file) => linkedNumbers(file.text, active).includes(number) && !later.includes(numberOf(file.name)))
      .map((file) => `${file.name} ${active.toLowerCase()} ${number}, which does not say so`);
    const missingInIndex = later
      .filter((other) => !row.includes(`${passive.toLowerCase()} by [${other}]`))
      .map((other) => `the index does not say that ${number} is ${passive.toLowerCase()} by ${other}`);
    // In the index several links may follow one "by": `amended by [0118](…), [0119](…)`.
    const indexParts = row
      .split(new RegExp(`${passive.toLowerCase()} by`))
      .slice(1)
      .map((part) => part.split(/(?:amended|replaced) by/)[0] ?? '');
    const wrongInIndex = indexParts
      .flatMap((part) => [...part.matchAll(/\[(\d{4})\]/g)].map(([, other]) => other ?? ''))
      .filter((other) => !later.includes(other))
      .map(
        (other) => `the index says that ${number} is ${passive.toLowerCase()} by ${other}, which ${name} does not say`,
      );
    return [...missingThere, ...missingHere, ...missingInIndex, ...wrongInIndex];
  });
  return faults;
}

/** The linked numbers in lines that begin with a word: `Replaces [0015](…)` or `Amends [0010](…) and [0017](…).` */
function linkedNumbers(text: string, word: string): string[] {
  const lines = text.split('\n').filter((line) => line.startsWith(`${word} [`));
  return lines.flatMap((line) => [...line.matchAll(/\[(\d{4})\]/g)].map(([, number]) => number ?? ''));
}

const numberOf = (name: string) => name.slice(0, 4);
const padded = (number: number) => String(number).padStart(4, '0');
