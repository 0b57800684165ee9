// Decisions are numbered without gaps. Their index says what each decides, and whether another one replaced or amended it.

/** `name` is the file's name in docs/decisions. */
export type Decision = { name: string; text: string };

/** What is wrong with the numbers, the titles, the index and the references between decisions, in words. */
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
    ...files.flatMap((file, at) => faultsOfFate(file, files, rows[at] ?? '')),
  ];
}

const FATES = { Replaced: 'Replaces', Amended: 'Amends' } as const;

/** Where a decision says "Replaced by" or "Amended by" another, that one says so as well, and so does the index. */
function faultsOfFate({ name, text }: Decision, files: readonly Decision[], row: string): string[] {
  const number = numberOf(name);
  const fates = Object.entries(FATES).flatMap(([passive, active]) => {
    const later = [...new Set(named(text, `${passive} by`))];
    const missing = later.flatMap((other) => {
      const found = files.find((file) => numberOf(file.name) === other);
      const answers = found !== undefined && named(found.text, active).includes(number);
      return answers ? [] : [`${name} is ${passive.toLowerCase()} by ${other}, which does not say so`];
    });
    const unsaid = files
      .filter((file) => named(file.text, active).includes(number) && !later.includes(numberOf(file.name)))
      .map((file) => `${file.name} ${active.toLowerCase()} ${number}, which does not say so`);
    const unlisted = later
      .filter((other) => !row.includes(`${passive.toLowerCase()} by [${other}]`))
      .map((other) => `the index does not say that ${number} is ${passive.toLowerCase()} by ${other}`);
    // In the index several may follow one word: `amended by [0118](…), [0119](…)`.
    const listed = row
      .split(new RegExp(`${passive.toLowerCase()} by`))
      .slice(1)
      .map((part) => part.split(/(?:amended|replaced) by/)[0] ?? '');
    const untrue = listed
      .flatMap((part) => [...part.matchAll(/\[(\d{4})\]/g)].map(([, other]) => other ?? ''))
      .filter((other) => !later.includes(other))
      .map(
        (other) => `the index says that ${number} is ${passive.toLowerCase()} by ${other}, which ${name} does not say`,
      );
    return [...missing, ...unsaid, ...unlisted, ...untrue];
  });
  return fates;
}

/** The numbers that follow a word at the beginning of a line: `Replaces [0015](…)` or `Amends [0010](…) and [0017](…).` */
function named(text: string, word: string): string[] {
  const lines = text.split('\n').filter((line) => line.startsWith(`${word} [`));
  return lines.flatMap((line) => [...line.matchAll(/\[(\d{4})\]/g)].map(([, number]) => number ?? ''));
}

const numberOf = (name: string) => name.slice(0, 4);
const padded = (number: number) => String(number).padStart(4, '0');
