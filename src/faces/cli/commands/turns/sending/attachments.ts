import { open } from 'node:fs/promises';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { ThroughlineError } from '../../../../../core/errors.ts';
import type { ContentBlock, Prompt } from '../../../../../core/turn/content.ts';
import { MEBIBYTE, MOST_OF_PROMPT, readStdin, readUpTo } from '../../../input.ts';

/** Files that go with a prompt: `--file` and `--image` of `throughline send`. */

interface Attachment {
  readonly path: string;
  readonly as: 'file' | 'image';
}

/** Bytes for what a request has besides the prompt. */
const REST_OF_REQUEST = 4_096;

const NAME_THE_PATH = 'Name its path in the prompt, and let the agent read it.';

/**
 * The files in the order in which they were given, then the words. Throws `not_found`, `invalid` or `too_large` with the name of the
 * file, before anything is stored.
 */
export async function withAttachments(words: string, files: readonly Attachment[]): Promise<Prompt> {
  const blocks: ContentBlock[] = [];
  for (const file of files) blocks.push(await blockOf(file));
  if (words.trim() !== '') blocks.push({ type: 'text', text: words });
  const bytes = Buffer.byteLength(JSON.stringify(blocks)) + REST_OF_REQUEST;
  if (bytes <= MOST_OF_PROMPT) return blocks;
  const all = `The prompt with its files has ${mebibytes(bytes)}; the limit is ${mebibytes(MOST_OF_PROMPT)}.`;
  throw new ThroughlineError('too_large', all, { hint: 'Attach fewer files, or name their paths in the prompt.' });
}

async function blockOf({ path, as }: Attachment): Promise<ContentBlock> {
  const bytes = path === '-' ? await readStdin(MOST_OF_PROMPT, NAME_THE_PATH) : await readBounded(path);
  const name = path === '-' ? 'The input' : `The file ${path}`;
  const mimeType = imageType(bytes);
  const uri = path === '-' ? 'stdin:' : pathToFileURL(resolve(path)).href;
  if (mimeType !== null) return { type: 'image', data: bytes.toString('base64'), mimeType, uri };
  if (as === 'image') {
    throw new ThroughlineError('invalid', `${name} is not a PNG, JPEG, GIF or WebP image.`, {
      hint: 'Attach text with --file.',
    });
  }
  return { type: 'resource', resource: { uri, text: textOf(bytes, name) } };
}

async function readBounded(path: string): Promise<Buffer> {
  const file = await open(path).catch((cause) => Promise.reject(unreadable(path, cause)));
  try {
    const stat = await file.stat();
    if (stat.isDirectory()) throw unreadable(path, { code: 'EISDIR' });
    return await readUpTo(
      MOST_OF_PROMPT,
      file.createReadStream({ autoClose: false }),
      `The file ${path}`,
      NAME_THE_PATH,
    );
  } catch (cause) {
    throw cause instanceof ThroughlineError ? cause : unreadable(path, cause);
  } finally {
    await file.close();
  }
}

function unreadable(path: string, cause: unknown): ThroughlineError {
  const { code } = cause as NodeJS.ErrnoException;
  if (code === 'ENOENT') return new ThroughlineError('not_found', `The file ${path} does not exist.`, { cause });
  if (code === 'EISDIR') {
    const hint = 'Name files, for example with --file once for each; or name the directory in the prompt.';
    return new ThroughlineError('invalid', `${path} is a directory, not a file.`, { hint });
  }
  const why = code === 'EACCES' || code === 'EPERM' ? 'you have no permission to read it' : code;
  return new ThroughlineError('invalid', `Cannot read the file ${path}: ${why}.`, { cause });
}

/** Every image type that agents take, by its first bytes: the ending of a name may be wrong. Null: it is none of them. */
function imageType(bytes: Uint8Array): string | null {
  const at = (index: number, text: string) =>
    bytes.length >= index + text.length && [...text].every((char, i) => bytes[index + i] === char.charCodeAt(0));
  if (at(0, '\u0089PNG\r\n\u001a\n')) return 'image/png';
  if (at(0, '\u00ff\u00d8\u00ff')) return 'image/jpeg';
  if (at(0, 'GIF87a') || at(0, 'GIF89a')) return 'image/gif';
  return at(0, 'RIFF') && at(8, 'WEBP') ? 'image/webp' : null;
}

/** `name`: the subject of the error message. */
function textOf(bytes: Buffer, name: string): string {
  try {
    if (!bytes.includes(0)) return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    // Refused below, as a file with zero bytes is.
  }
  throw new ThroughlineError('invalid', `${name} is neither text in UTF-8 nor a PNG, JPEG, GIF or WebP image.`, {
    hint: NAME_THE_PATH,
  });
}

function mebibytes(bytes: number): string {
  return `${Math.ceil((bytes / MEBIBYTE) * 10) / 10} MiB`;
}
