import { constants } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { RequestError } from '@agentclientprotocol/sdk';
import { asObject } from '../connection/capabilities.ts';
import { openInside } from './inside.ts';

const MOST_BYTES = 32 * 1024 * 1024;

/** Reads a text file for an agent, only inside of the roots. */
export async function readTextFile(roots: readonly string[], params: unknown): Promise<{ content: string }> {
  const { path, line, limit } = asObject(params);
  await using handle = await openFile(roots, path, constants.O_RDONLY, false);
  const { size } = await handle.stat();
  if (size > MOST_BYTES) throw RequestError.invalidParams({ path }, `${path} is larger than ${MOST_BYTES} bytes`);
  return { content: linesOf(await handle.readFile('utf8'), line, limit) };
}

/** Writes a text file for an agent, only inside of the roots. Makes the missing folders. */
export async function writeTextFile(roots: readonly string[], params: unknown): Promise<Record<string, never>> {
  const { path, content } = asObject(params);
  if (typeof content !== 'string') throw RequestError.invalidParams(undefined, 'content must be a string');
  await using handle = await openFile(roots, path, constants.O_WRONLY | constants.O_CREAT, true);
  await handle.truncate(0);
  await handle.writeFile(content);
  return {};
}

async function openFile(roots: readonly string[], path: unknown, flags: number, make: boolean): Promise<FileHandle> {
  // Not blocking: otherwise opening a pipe waits until somebody opens its other end.
  const opened =
    typeof path === 'string'
      ? await openInside(path, roots, flags | constants.O_NONBLOCK, make).catch((error) => {
          throw failed(path, error);
        })
      : null;
  if (opened === null) throw RequestError.invalidParams({ path }, `${path} is outside of the sandbox's directory`);
  if ((await opened.stat()).isFile()) return opened;
  await opened.close();
  throw RequestError.invalidParams({ path }, `${path} is not a file`);
}

/** `line` counts from 1. */
function linesOf(text: string, line: unknown, limit: unknown): string {
  if (typeof line !== 'number' && typeof limit !== 'number') return text;
  const from = typeof line === 'number' ? Math.max(0, line - 1) : 0;
  const lines = text.split('\n');
  return lines.slice(from, typeof limit === 'number' ? from + limit : undefined).join('\n');
}

function failed(path: unknown, error: NodeJS.ErrnoException): Error {
  if (error.code === 'ENOENT') return RequestError.resourceNotFound(String(path));
  return RequestError.internalError({ path }, `${path}: ${error.code ?? error.message}`);
}
