import { readFileSync, writeFileSync } from 'node:fs';
import { BaseSequencer } from 'vitest/node';

/*
 * The longest test files start first. Started last, one of them would run alone for minutes, while the other cores have nothing to do.
 *
 * How long files take is recorded in test-seconds.json, because a fresh clone has no earlier run to learn from, and the size of a file
 * says little: the longest are small and run shared scenarios with real agents. `npm test -- --record` records it anew, and a whole run
 * says when that is needed.
 */
const RECORD = new URL('test-seconds.json', import.meta.url);
/** Files that take less need no place in the record. */
const RECORDED_FROM = 5;
/** A file that takes this long and is not in the record makes the whole run longer. */
const MISSED_FROM = 30;

/** @typedef {Readonly<Record<string, number>>} Seconds by file */
/** @typedef {Readonly<Record<string, Pick<import('./test-parts.js').FileRun, 'seconds'>>>} Runs by file, of a whole run */

/** @returns {Seconds} */
const recorded = () => JSON.parse(readFileSync(RECORD, 'utf8'));

/**
 * First the files that get a process of their own, then all others; of each, the longest first. Not mixed: vitest ends a process that files
 * share when the next file in the order is one with a process of its own.
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
 * Why the record should be made anew; null: it need not be.
 * @param {Runs} runs
 * @returns {string | null}
 */
export function outOfDate(runs) {
  const known = recorded();
  const gone = Object.keys(known).filter((file) => !(file in runs));
  const missed = Object.keys(runs).filter((file) => (runs[file]?.seconds ?? 0) >= MISSED_FROM && !(file in known));
  if (gone.length + missed.length === 0) return null;
  return `The order of the test files is out of date (${[...gone, ...missed].join(', ')}): run \`npm test -- --record\`.`;
}
