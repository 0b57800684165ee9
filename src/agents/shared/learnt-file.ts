import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { parseObject } from './json.ts';

/* Files in a folder of our own, with what was learnt about agents. They may be deleted at any time: then it is learnt again. */

/** Null: there is none, or it cannot be read. */
export function readLearntFile(file: string): Record<string, unknown> | null {
  try {
    return parseObject(readFileSync(file, 'utf8')) ?? null;
  } catch {
    return null;
  }
}

/** If the file cannot be written, only this process has it, and the next one learns it again. */
export function writeLearntFile(file: string, learnt: object): void {
  const draft = `${file}.${process.pid}`;
  try {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
    writeFileSync(draft, JSON.stringify(learnt), { mode: 0o600 });
    renameSync(draft, file);
  } catch {
    // The folder may be read-only.
  }
}
