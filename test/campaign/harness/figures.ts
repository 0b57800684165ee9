import type { Random } from '../../faults/harness/random.ts';

/** Counts of what a scenario did and saw, by the name to show: `{ 'server kills': 64 }`. */
export type Figures = Readonly<Record<string, number>>;

export interface Outcome {
  readonly figures: Figures;
  /** What should not have happened, in words. */
  readonly violations: readonly string[];
}

/** The input of a scenario. The same seed makes the same choices, but the timing differs. */
export interface Run {
  readonly seed: number;
  readonly random: Random;
  /** False: a short version of a few seconds, for every `npm run test:all`. */
  readonly long: boolean;
}

export interface Scenario {
  readonly name: string;
  /** What it does, for docs/reliability.md. */
  readonly does: string;
  /** Why it cannot run here; null: it can. Left out: it always can. */
  readonly missing?: () => string | null;
  /** Left out: the short version runs it as well. */
  readonly onlyLong?: true;
  run(run: Run): Promise<Outcome>;
}

export interface Ran extends Outcome, Pick<Run, 'seed' | 'long'> {
  readonly scenario: Scenario;
  readonly seconds: number;
}

/** The table of docs/reliability.md. */
export function tableOf(ran: readonly Ran[]): string {
  return ['| scenario | figures | violations |', '|---|---|---|', ...ran.map(rowOf)].join('\n');
}

function rowOf({ scenario, figures, violations }: Ran): string {
  return `| **${scenario.name}**: ${scenario.does} | ${inWords(figures)} | ${violations.length} |`;
}

/** One line for the terminal, with the command that repeats the scenario. */
export function lineOf({ scenario, seed, long, seconds, figures, violations }: Ran): string {
  const result = violations.length === 0 ? 'no violation' : `${violations.length} VIOLATIONS`;
  const again = `THROUGHLINE_SEED=${seed} npm ${long ? 'run test:long' : 'test'} -- campaign -t ${scenario.name}`;
  return `${scenario.name}: ${inWords(figures)}; ${result}; ${seconds.toFixed(0)} s (${again})`;
}

export function inWords(figures: Figures): string {
  return Object.entries(figures)
    .map(([name, count]) => `${count.toLocaleString('en-US')} ${name}`)
    .join(', ');
}

const BETWEEN = /(<!-- figures -->\n)(.*?)(\n<!-- end of figures -->)/s;

/** The text between the two marks of the page. Throws when it has no such marks. */
export function figuresIn(page: string): string {
  const [, , text] = BETWEEN.exec(page) ?? [];
  if (text === undefined) throw new Error('the page has no place for the figures');
  return text;
}

/** The page with this text between its two marks. */
export function withFigures(page: string, text: string): string {
  figuresIn(page);
  return page.replace(BETWEEN, (_, before: string, _old, after: string) => `${before}${text}${after}`);
}

/** The page with new rows for these scenarios. Throws when it has no row of one of them. */
export function withRows(page: string, ran: readonly Ran[]): string {
  const lines = figuresIn(page).split('\n');
  for (const one of ran) {
    const at = lines.findIndex((line) => line.startsWith(`| **${one.scenario.name}**:`));
    if (at < 0) throw new Error(`the page has no row of ${one.scenario.name}`);
    lines[at] = rowOf(one);
  }
  return withFigures(page, lines.join('\n'));
}
