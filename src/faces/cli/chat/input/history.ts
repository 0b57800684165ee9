import { createHash, randomUUID } from 'node:crypto';
import { appendFileSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/*
 * The prompts that a person wrote at a terminal, to be found again with the arrow keys: one file per owner in the data home, readable by
 * this user alone, one JSON string per line. Several chats may add to it at once. It is shortened when it is opened.
 */

const MOST_PROMPTS = 500;
/** In code units. Longer input (a pasted book) is not kept. */
const LONGEST_PROMPT = 20_000;

/** Where the prompts of an owner are kept. Owners may have characters that are not allowed in file names, so the name is a hash. */
export function historyFile(home: string, owner: string): string {
  return join(home, 'chat', `${createHash('sha256').update(owner).digest('hex').slice(0, 16)}.history`);
}

/** Oldest first. A file that is missing or damaged gives what can be read of it. Throws when it cannot be read or shortened. */
export function readHistory(file: string): string[] {
  const lines = linesOf(file);
  const prompts = lines.flatMap(promptIn).slice(-MOST_PROMPTS);
  if (lines.length > 2 * MOST_PROMPTS) {
    const draft = `${file}.${randomUUID()}`;
    writeFileSync(draft, prompts.map((prompt) => `${JSON.stringify(prompt)}\n`).join(''), { flag: 'wx', mode: 0o600 });
    renameSync(draft, file);
  }
  return prompts;
}

/** Throws when it cannot be written. */
export function addToHistory(file: string, prompt: string): void {
  if (prompt.length > LONGEST_PROMPT) return;
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  // In one write: lines of several chats do not mix.
  appendFileSync(file, `${JSON.stringify(prompt)}\n`, { mode: 0o600 });
}

function linesOf(file: string): string[] {
  try {
    return readFileSync(file, 'utf8')
      .split('\n')
      .filter((line) => line !== '');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}

/** Empty: the line is damaged. */
function promptIn(line: string): string[] {
  try {
    const prompt: unknown = JSON.parse(line);
    return typeof prompt === 'string' ? [prompt] : [];
  } catch {
    return [];
  }
}
