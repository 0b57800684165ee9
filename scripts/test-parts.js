// The table at the end of a run: how long each part of the tests took. Issues and CONTRIBUTING.md promise limits for some of them.
import { readFileSync } from 'node:fs';
import { PARTS } from './test-areas.js';

/**
 * @typedef {{ readonly from: number, readonly to: number, readonly seconds: number, readonly processor: number, readonly tests: number }} FileRun
 * When a test file ran (milliseconds of one clock), how long its tests took, and the processor time of its process and of its child
 * processes that have ended. A browser or a server that several files share is not counted.
 */

/** @typedef {{ readonly wall: number, readonly processor: number, readonly tests: number }} Part in seconds */

/**
 * Several files run at the same time. So each moment is divided equally among the files that run, and the sum of all parts is the length
 * of the run.
 * @param {Readonly<Record<string, FileRun>>} files
 * @returns {Record<string, Part>}
 */
export function partsOf(files) {
  const wall = sharesOf(files);
  /** @type {Record<string, Part>} */
  const parts = {};
  for (const [file, { processor, tests }] of Object.entries(files)) {
    const name = partOf(file);
    const part = parts[name] ?? { wall: 0, processor: 0, tests: 0 };
    parts[name] = {
      wall: part.wall + (wall.get(file) ?? 0),
      processor: part.processor + processor,
      tests: part.tests + tests,
    };
  }
  return parts;
}

/** @param {string} file */
function partOf(file) {
  const found = Object.entries(PARTS).find(([, starts]) => starts.some((start) => file.startsWith(start)));
  return found?.[0] ?? 'the rest';
}

/**
 * @param {Readonly<Record<string, FileRun>>} files
 * @returns {Map<string, number>} seconds by file
 */
function sharesOf(files) {
  const changes = Object.entries(files).flatMap(([file, { from, to }]) => [
    { file, at: from, starts: true },
    { file, at: to, starts: false },
  ]);
  changes.sort((a, b) => a.at - b.at);
  /** @type {Map<string, number>} */
  const shares = new Map();
  /** @type {Set<string>} */
  const running = new Set();
  let last = 0;
  for (const { file, at, starts } of changes) {
    for (const one of running) shares.set(one, (shares.get(one) ?? 0) + (at - last) / 1000 / running.size);
    if (starts) running.add(file);
    else running.delete(file);
    last = at;
  }
  return shares;
}

/**
 * @param {Readonly<Record<string, Part>>} parts
 * @returns {string[]} the lines of the table
 */
export function tableOf(parts) {
  const rows = Object.entries(parts).map(([name, { wall, processor, tests }]) => [
    name,
    minutes(wall),
    processor.toFixed(0),
    String(tests),
  ]);
  const all = [['part', 'time', 'processor s', 'tests'], ...rows];
  const widths = [0, 1, 2, 3].map((column) => Math.max(...all.map((row) => (row[column] ?? '').length)));
  return all.map((row) =>
    row.map((cell, i) => (i === 0 ? cell.padEnd(widths[i] ?? 0) : cell.padStart(widths[i] ?? 0))).join('  '),
  );
}

/** @param {number} seconds */
function minutes(seconds) {
  const whole = Math.round(seconds);
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, '0')}`;
}

const TICKS_PER_SECOND = 100;

/** The processor time of this process and its descendants that have ended. Without /proc, only of this process. */
export function processorSeconds() {
  try {
    const stat = readFileSync('/proc/self/stat', 'latin1');
    // Behind the name of the program, which may contain anything, the 12th to 15th field are utime, stime, cutime and cstime.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks), 0) / TICKS_PER_SECOND;
  } catch {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1e6;
  }
}
