import { readFile } from 'node:fs/promises';
import { ThroughlineError } from '../../core/errors.ts';

const MEBIBYTE = 1_048_576;
/** The server takes no more either. */
const MOST_OF_PROMPT = 8 * MEBIBYTE;
/** A text in this process cannot have more. */
const MOST_OF_FILE = 500 * MEBIBYTE;

/** The whole of stdin as a prompt. It may be endless: no more is read than is taken. */
export async function readPrompt(): Promise<string> {
  return readStdin(MOST_OF_PROMPT, 'Put it into a file, and name that in the prompt.');
}

async function readStdin(most: number, hint?: string): Promise<string> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of process.stdin) {
    chunks.push(chunk);
    length += chunk.length;
    if (length <= most) continue;
    const tooLarge = `The input has more than ${most / MEBIBYTE} MiB.`;
    throw new ThroughlineError('too_large', tooLarge, hint === undefined ? {} : { hint });
  }
  return Buffer.concat(chunks).toString('utf8');
}

/** A file, or stdin when it is called `-`. */
export async function readInput(file: string): Promise<string> {
  if (file === '-') return readStdin(MOST_OF_FILE);
  try {
    return await readFile(file, 'utf8');
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    const why = code === 'ENOENT' ? 'does not exist' : `cannot be read (${code})`;
    throw new ThroughlineError(code === 'ENOENT' ? 'not_found' : 'invalid', `The file ${file} ${why}.`, { cause });
  }
}
