import { readFileSync, writeFileSync } from 'node:fs';
import { BaseSequencer } from 'vitest/node';

/*
 * The longest test files start first. Otherwise one of them would run alone at the end for minutes, while the other cores are idle.
 *
 * How long files take is recorded in test-seconds.json, because a fresh clone has no earlier run. The size of a file says little: the
 * longest ones are small files that run shared scenarios with real agents. `npm run test:all -- --record` updates the record, and a complete
 * run reports when that is needed.
 */
const RECORD = new URL('test-seconds.json', import.meta.url);
/** In seconds. Shorter files are not recorded. */
const RECORDED_FROM = 5;
/** In seconds. A file that takes this long should be in the record: started late, it makes the whole run longer. */
const MISSED_FROM = 30;

/** @typedef {Readonly<Record<string, number>>} Seconds by file */
/** @typedef {Readonly<Record<string, Pick<import('./test-parts.js').FileRun, 'seconds'>>>} Runs by file, of a whole run */

/** @returns {Seconds} */
const recorded = () => JSON.parse(readFileSync(RECORD, 'utf8'));

/**
 * First the files that get a process of their own, then all others; in both groups, the longest first. The groups are not mixed, because
 * vitest ends a shared process when the next file needs a process of its own.
 */
export default class LongestFirst extends BaseSequencer {
  /**
   * @override
   * @param {import('vitest/node').TestSpecification[]} files
   */
  async sort(files) {
    const seconds = recorded();
    /** @param {import('vitest/node').TestSpecification} file */
    const of = ({ moduleId, project }) => seconds[moduleId.slice(project.config.root.length + 1)] ?? 0;
    /** @param {import('vitest/node').TestSpecification} file */
    const isAlone = ({ project }) => (project.config.isolate ? 1 : 0);
    return (await super.sort(files)).toSorted((a, b) => isAlone(b) - isAlone(a) || of(b) - of(a));
  }
}

/** @param {Runs} runs */
export function record(runs) {
  const long = Object.entries(runs).filter(([, { seconds }]) => seconds >= RECORDED_FROM);
  const sorted = long.toSorted(([, a], [, b]) => b.seconds - a.seconds);
  const rounded = sorted.map(([file, { seconds }]) => [file, Math.round(seconds)]);
  writeFileSync(RECORD, `${JSON.stringify(Object.fromEntries(rounded), null, 2)}\n`);
}

/**
 * Why the record should be updated. Null: it is up to date.
 * @param {Runs} runs
 * @returns {string | null}
 */
export function outOfDate(runs) {
  const known = recorded();
  const gone = Object.keys(known).filter((file) => !(file in runs));
  const missed = Object.keys(runs).filter((file) => (runs[file]?.seconds ?? 0) >= MISSED_FROM && !(file in known));
  if (gone.length + missed.length === 0) return null;
  return `The order of the test files is out of date (${[...gone, ...missed].join(', ')}): run \`npm run test:all -- --record\`.`;
}
