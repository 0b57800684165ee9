import type { Random } from '../../faults/harness/random.ts';

/** Counts of what a scenario did and saw, by a name that is shown: `{ 'server kills': 64 }`. */
export type Figures = Readonly<Record<string, number>>;

export interface Outcome {
  readonly figures: Figures;
  /** What should not have happened, in words. None: all is well. */
  readonly violations: readonly string[];
}

/** What a scenario is given. The same seed asks for the same things; when they happen is the machine's. */
export interface Run {
  readonly seed: number;
  readonly random: Random;
  /** False: a slice of a few seconds, for every `npm test`. */
  readonly long: boolean;
}

export interface Scenario {
  readonly name: string;
  /** What it does, as docs/reliability.md says it. */
  readonly does: string;
  /** Why it cannot run here; null: it can. Left out: it always can. */
  readonly missing?: () => string | null;
  /** Left out: it is also in the slice. */
  readonly onlyLong?: true;
  run(run: Run): Promise<Outcome>;
}

export interface Ran extends Outcome, Pick<Run, 'seed' | 'long'> {
  readonly scenario: Scenario;
  readonly seconds: number;
}

/** The table of docs/reliability.md. */
export function tableOf(ran: readonly Ran[]): string {
  const rows = ran.map(
    ({ scenario, figures, violations }) =>
      `| **${scenario.name}**: ${scenario.does} | ${inWords(figures)} | ${violations.length} |`,
  );
  return ['| scenario | figures | violations |', '|---|---|---|', ...rows].join('\n');
}

/** One line for whoever watches, with what repeats it. */
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

const BETWEEN = /(<!-- figures -->\n).*?(<!-- end of figures -->)/s;

/** The page with this between its two marks. Throws when it has no such marks. */
export function withFigures(page: string, text: string): string {
  if (!BETWEEN.test(page)) throw new Error('the page has no place for the figures');
  return page.replace(BETWEEN, (_, before: string, after: string) => `${before}${text}\n${after}`);
}
