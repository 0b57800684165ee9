import { readFile } from 'node:fs/promises';
import { ThroughlineError } from '../../core/errors.ts';

/** The whole of stdin as text. */
export async function readStdin(): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of process.stdin) chunks.push(chunk);
  return Buffer.concat(chunks).toString('utf8');
}

/** A file, or stdin when it is called `-`. */
export async function readInput(file: string): Promise<string> {
  if (file === '-') return readStdin();
  try {
    return await readFile(file, 'utf8');
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    const why = code === 'ENOENT' ? 'does not exist' : `cannot be read (${code})`;
    throw new ThroughlineError(code === 'ENOENT' ? 'not_found' : 'invalid', `The file ${file} ${why}.`, { cause });
  }
}
